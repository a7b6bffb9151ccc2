#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Completions for bash, zsh and fish, from the programs' --help.

Usage: completions.py SOJOURN SOJOURN-DRIVE FOLDER: writes FOLDER/{sojourn.bash,_sojourn,sojourn.fish}
"""
import re
import subprocess
import sys
from pathlib import Path

OPTION = re.compile(r"^ {2,6}(?:-(\w), (?:-\w, )?)?--([a-z][a-z0-9-]*)(?:[ =]([^ ]+))?(?: {2,}(.*))?$")
COMMAND = re.compile(r"^  ([a-z]+) +(.+)$")
FILES = ("FILE", "PATH")  # values that are file names


def help_of(*words):
    return subprocess.run([*words, "--help"], check=True, capture_output=True,
                          text=True).stdout.splitlines()


def options_of(lines):
    """Return [(letter or None, name, value's name or None, first line of help)]."""
    found = []
    for at, line in enumerate(lines):
        match = OPTION.match(line)
        if match:
            text = match[4] or (lines[at + 1].strip() if at + 1 < len(lines) else "")
            found.append((match[1], match[2], match[3], text))
    return found


def commands_of(lines):
    return [(match[1], match[2]) for match in map(COMMAND.match, lines) if match]


def words_of(options):
    return " ".join(f"--{name}" for _, name, _, _ in options)


def files_of(options):
    return "|".join(f"--{name}" for _, name, value, _ in options if value in FILES) or "--no-such"


def bash(programs, commands):
    cases = "\n".join(f'\t"{" ".join(words)}") options="{words_of(options)}"; files="{files_of(options)}" ;;'
                      for words, options in programs.items() if len(words) > 1)
    plain = programs[("sojourn-drive",)]
    names = {program: " ".join(name for name, _ in found) for program, found in commands.items()}
    return f"""# bash completion for sojourn and sojourn-drive
_sojourn()
{{
	local options="" files="--no-such" word=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD-1]}}
	local program=${{1##*/}} before=$COMP_CWORD command=${{COMP_WORDS[1]}}
	if [ "$program $command" = "sojourn drive" ] && [ "$before" -gt 1 ]; then
		program=sojourn-drive command=${{COMP_WORDS[2]}} before=$((before - 1))
	fi
	if [ "$before" = 1 ] && [ "$program" = sojourn ]; then
		mapfile -t COMPREPLY < <(compgen -W "{names["sojourn"]} --help --version" -- "$word")
		return
	fi
	if [ "$before" = 1 ] && [[ "$word" != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -W "{names["sojourn-drive"]}" -- "$word")
		return
	fi
	case "$program $command" in
{cases}
	"sojourn-drive "*) options="{words_of(plain)}"; files="{files_of(plain)}" ;;
	esac
	if [[ "$last" =~ ^($files)$ ]] || [[ "$word" != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		compopt -o filenames 2>/dev/null
	else
		mapfile -t COMPREPLY < <(compgen -W "$options" -- "$word")
	fi
}}
complete -F _sojourn sojourn sojourn-drive
"""


def quoted(text):
    return re.sub(r"([\\'\[\]:])", r"\\\1", text).replace("\\'", "'\\''")


def zsh_options(options):
    return " \\\n\t\t".join(
        f"'--{name}{'=' if value else ''}[{quoted(text)}]"
        f"{':' + quoted(value) + ':' + ('_files' if value in FILES else '') if value else ''}'"
        for _, name, value, text in options)


def zsh_cases(programs, program, indent):
    return "\n".join(f"{indent}{words[1]})\n{indent}\t_arguments \\\n\t\t{zsh_options(options)} \\\n\t\t'*:file:_files' ;;"
                     for words, options in programs.items() if len(words) > 1 and words[0] == program)


def zsh_names(commands):
    return " ".join(f"'{name}:{quoted(text)}'" for name, text in commands)


def zsh(programs, commands):
    return f"""#compdef sojourn sojourn-drive
_sojourn_drive() {{
	if (( CURRENT == 2 )) && [[ $words[2] != -* ]]; then
		local -a commands=({zsh_names(commands["sojourn-drive"])})
		_describe command commands
		return
	fi
	case $words[2] in
{zsh_cases(programs, "sojourn-drive", chr(9))}
	*)
		_arguments \\
		{zsh_options(programs[("sojourn-drive",)])} \\
		'*:URL:' ;;
	esac
}}
_sojourn_command() {{
	case $1 in
{zsh_cases(programs, "sojourn", chr(9))}
	drive)
		_sojourn_drive ;;
	esac
}}
_sojourn() {{
	if [[ $service == sojourn-drive ]]; then
		_sojourn_drive
	elif (( CURRENT == 2 )); then
		local -a commands=({zsh_names(commands["sojourn"])})
		_describe command commands
	else
		local command=$words[2]
		shift words
		(( CURRENT-- ))
		_sojourn_command $command
	fi
}}
_sojourn "$@"
"""


def fish_options(condition, options):
    for letter, name, value, text in options:
        words = [f"-l {name}"] + ([f"-s {letter}"] if letter else [])
        words += ["-r" if value in FILES else "-x"] if value else []
        text = text.replace("\\", "\\\\").replace("'", "\\'")
        yield f"complete {condition} {' '.join(words)} -d '{text}'"


def seen(names):
    return f"__fish_seen_subcommand_from {' '.join(names)}"


def fish_drive(programs, commands, program):
    """Yield the driver's completions: its commands, each one's options, and those of a plain load."""
    names = [name for name, _ in commands]
    context = "" if program == "sojourn-drive" else f"{seen(['drive'])}; and "
    yield from (f"complete -c {program} -n '{context}not {seen(names)}' -a {name} -d '{text}'" for name, text in commands)
    for name in names:
        yield from fish_options(f"-c {program} -n '{context}{seen([name])}'", programs[("sojourn-drive", name)])
    yield from fish_options(f"-c {program} -n '{context}not {seen(names)}'", programs[("sojourn-drive",)])


def fish(programs, commands):
    lines = ["# fish completion for sojourn and sojourn-drive"]
    for name, text in commands["sojourn"]:
        lines.append(f"complete -c sojourn -n __fish_use_subcommand -x -a {name} -d '{text}'")
    for words, options in programs.items():
        if len(words) > 1 and words[0] == "sojourn":
            lines.extend(fish_options(f"-c sojourn -n '{seen([words[1]])}'", options))
    for program in ("sojourn", "sojourn-drive"):
        lines.extend(fish_drive(programs, commands["sojourn-drive"], program))
    return "\n".join(lines) + "\n"


def drive_commands(drive):
    """Return [(name, what it does)] of the commands that the driver's help names."""
    names = re.search(r"help \[([a-z|]+)\]", "\n".join(help_of(drive)))[1].split("|")
    return [(name, re.split(r"[,:(]", help_of(drive, name)[1])[0].strip()) for name in names]


def main():
    sojourn, drive, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    commands = {"sojourn": commands_of(help_of(sojourn)), "sojourn-drive": drive_commands(drive)}
    programs = {("sojourn", name): options_of(help_of(sojourn, name)) for name, _ in commands["sojourn"]
                if name not in ("drive", "version")}
    programs[("sojourn-drive",)] = options_of(help_of(drive))
    programs.update({("sojourn-drive", name): options_of(help_of(drive, name)) for name, _ in commands["sojourn-drive"]})
    empty = [words for words, options in programs.items() if not options]
    if empty or not commands["sojourn"]:
        sys.exit(f"completions.py: no options in the help of {empty}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sojourn.bash").write_text(bash(programs, commands), encoding="utf-8")
    (folder / "_sojourn").write_text(zsh(programs, commands), encoding="utf-8")
    (folder / "sojourn.fish").write_text(fish(programs, commands), encoding="utf-8")


if __name__ == "__main__":
    main()
