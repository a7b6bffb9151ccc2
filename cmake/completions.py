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
    drive = programs[("sojourn-drive",)]
    return f"""# bash completion for sojourn and sojourn-drive
_sojourn()
{{
	local options="" files="--no-such" word=${{COMP_WORDS[COMP_CWORD]}} last=${{COMP_WORDS[COMP_CWORD-1]}}
	if [ "${{1##*/}}" = sojourn ] && [ "$COMP_CWORD" = 1 ]; then
		mapfile -t COMPREPLY < <(compgen -W "{" ".join(name for name, _ in commands)} --help --version" -- "$word")
		return
	fi
	case "${{1##*/}}${{COMP_WORDS[1]:+ ${{COMP_WORDS[1]}}}}" in
	sojourn-drive*|"sojourn drive") options="{words_of(drive)}"; files="{files_of(drive)}" ;;
{cases}
	esac
	if [[ "$last" =~ ^($files)$ ]] || [[ "$word" != -* ]]; then
		mapfile -t COMPREPLY < <(compgen -f -- "$word")
		compopt -o filenames
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


def zsh(programs, commands):
    cases = "\n".join(f"\t{words[1]})\n\t\t_arguments \\\n\t\t{zsh_options(options)} \\\n\t\t'*:file:_files' ;;"
                      for words, options in programs.items() if len(words) > 1)
    names = " ".join(f"'{name}:{quoted(text)}'" for name, text in commands)
    return f"""#compdef sojourn sojourn-drive
_sojourn_command() {{
	case $1 in
{cases}
	drive)
		_arguments \\
		{zsh_options(programs[("sojourn-drive",)])} \\
		'*:URL:' ;;
	esac
}}
_sojourn() {{
	if [[ $service == sojourn-drive ]]; then
		_sojourn_command drive
	elif (( CURRENT == 2 )); then
		local -a commands=({names})
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


def fish(programs, commands):
    lines = ["# fish completion for sojourn and sojourn-drive"]
    for name, text in commands:
        lines.append(f"complete -c sojourn -n __fish_use_subcommand -x -a {name} -d '{text}'")
    for words, options in programs.items():
        condition = f"-c sojourn -n '__fish_seen_subcommand_from {words[1]}'" if len(words) > 1 \
            else "-c sojourn-drive"
        lines.extend(fish_options(condition, options))
    lines.extend(fish_options("-c sojourn -n '__fish_seen_subcommand_from drive'",
                              programs[("sojourn-drive",)]))
    return "\n".join(lines) + "\n"


def main():
    sojourn, drive, folder = sys.argv[1], sys.argv[2], Path(sys.argv[3])
    commands = commands_of(help_of(sojourn))
    programs = {("sojourn", name): options_of(help_of(sojourn, name)) for name, _ in commands
                if name not in ("drive", "version")}
    programs[("sojourn-drive",)] = options_of(help_of(drive))
    empty = [words for words, options in programs.items() if not options]
    if empty or not commands:
        sys.exit(f"completions.py: no options in the help of {empty}")
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "sojourn.bash").write_text(bash(programs, commands), encoding="utf-8")
    (folder / "_sojourn").write_text(zsh(programs, commands), encoding="utf-8")
    (folder / "sojourn.fish").write_text(fish(programs, commands), encoding="utf-8")


if __name__ == "__main__":
    main()
