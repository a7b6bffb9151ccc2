// SPDX-License-Identifier: MIT
/*
 * Properties of a host that make BPF programs cheap or dear; see machine.h. The kernel describes them in sentences,
 * which have changed over time. arch/x86/kernel/cpu/bugs.c and arch/arm64/kernel/proton-pack.c write them.
 */
#include "machine.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#ifdef __x86_64__
#include <cpuid.h>
#endif

#include "sojourn/cleanup.h"
#include "sojourn/finding.h"
#include "sojourn/machine.h"
#include "sojourn/procfs.h"

#define VULNERABILITIES "/sys/devices/system/cpu/vulnerabilities/"
#define CLOCK_SOURCE	"/sys/devices/system/clocksource/clocksource0/current_clocksource"
#define CPU_FLAGS	"/proc/cpuinfo"
#define TEXT_BYTES	16384 /* the flags of one CPU are 2 KiB */

/* Read a file below @root. False: it cannot be read. */
static bool read_text(const char *root, const char *path, size_t size, char *ret_text)
{
	return procfs_read(procfs_open("%s%s", root, path), ret_text, size) >= 0;
}

/* Read its first line, without blanks at the end. */
static bool read_line(const char *root, const char *path, size_t size, char *ret_text)
{
	size_t length;

	if (!read_text(root, path, size, ret_text))
		return false;
	length = strcspn(ret_text, "\n");
	while (length && ret_text[length - 1] == ' ')
		length--;
	ret_text[length] = 0;
	return length > 0;
}

/* ---- mitigations ---- */

/*
 * The mitigations that a BPF program pays for: it is entered by an indirect call, left by a return, and calls
 * helpers. Mitigations at the kernel's entry slow all system calls, observed or not, and so the baseline of the cost,
 * too.
 */
static const struct {
	const char *path;
	const char *words;  /* the kernel's, whatever their case */
	const char *unless; /* not if these words occur, too; NULL: none */
	const char *phrase;
} mitigations[] = {
	{VULNERABILITIES "spectre_v2", "retpoline", "AMD retpoline", "retpolines"},
	{VULNERABILITIES "spectre_v2", ": LFENCE", NULL, "LFENCE before indirect branches"},
	{VULNERABILITIES "spectre_v2", "IBRS + LFENCE", NULL, "LFENCE before indirect branches"},
	{VULNERABILITIES "spectre_v2", "AMD retpoline", NULL, "LFENCE before indirect branches"},
	{VULNERABILITIES "spectre_v2", ": Enhanced", NULL, "enhanced IBRS"},
	{VULNERABILITIES "spectre_v2", "Mitigation: IBRS", NULL, "IBRS at kernel entry"},
	{VULNERABILITIES "spectre_v2", "BHI: BHI_DIS_S", NULL, "BHI_DIS_S"},
	{VULNERABILITIES "spectre_v2", "BHI: SW loop", NULL, "BHB cleared at kernel entry"},
	{VULNERABILITIES "spectre_v2", "Branch predictor hardening", NULL,
	 "branch predictor hardened at kernel entry"},
	{VULNERABILITIES "spectre_v2", ", BHB", NULL, "BHB cleared at kernel entry"},
	{VULNERABILITIES "retbleed", ": untrained return thunk", NULL, "untrained return thunks"},
	{VULNERABILITIES "retbleed", ": Stuffing", NULL, "call depth tracking"},
	{VULNERABILITIES "retbleed", "Mitigation: IBPB", NULL, "IBPB at kernel entry"},
	{VULNERABILITIES "spec_rstack_overflow", ": Safe RET", NULL, "Safe RET"},
	{VULNERABILITIES "spec_rstack_overflow", "Mitigation: IBPB", "VMEXIT",
	 "IBPB at kernel entry"},
	{VULNERABILITIES "indirect_target_selection", "Aligned branch/return thunks", NULL,
	 "aligned branch and return thunks"},
	{VULNERABILITIES "indirect_target_selection", "Stuffing RSB", NULL, "call depth tracking"},
	{VULNERABILITIES "meltdown", "Mitigation: PTI", NULL, "page table isolation"},
	{"/proc/sys/net/core/bpf_jit_harden", "2", NULL, "hardened JIT"},
	{"/proc/sys/net/core/bpf_jit_enable", "0", NULL, "no JIT"},
};

/*
 * Return whether @flag is a word of the first CPU's flags. *ret_flags: whether /proc/cpuinfo has flags (arm64 has
 * features).
 */
static bool has_flag(const char *cpuinfo, const char *flag, bool *ret_flags)
{
	const char *line = strstr(cpuinfo, "\nflags");
	size_t length = strlen(flag), rest = line ? strcspn(line + 1, "\n") : 0;

	*ret_flags = line != NULL;
	for (const char *at = line; at && (at = strstr(at, flag)); at += length) {
		if (at > line + rest)
			return false;
		if (at[-1] == ' ' && strchr(" \n", at[length]))
			return true;
	}
	return false;
}

/* Read the mitigations. *ret_list stays NULL, for not known, if the kernel lists no vulnerabilities. */
static int read_mitigations(const char *root, const char *cpuinfo, char ***ret_list)
{
	bool known = false, flags;
	char text[512];
	int err = 0;

	for (size_t i = 0; !err && i < ARRAY_SIZE(mitigations); i++) {
		if (!read_line(root, mitigations[i].path, sizeof(text), text))
			continue;
		known |= !strncmp(mitigations[i].path, VULNERABILITIES, strlen(VULNERABILITIES));
		if (strcasestr(text, mitigations[i].words) &&
		    (!mitigations[i].unless || !strstr(text, mitigations[i].unless)))
			err = run_add_text_once(ret_list, mitigations[i].phrase);
	}
	/* The flag goes when the kernel must not use it (ibt=off). */
	if (!err && has_flag(cpuinfo, "ibt", &flags))
		err = run_add_text_once(ret_list, "IBT");
	if (!err && known && !*ret_list)
		*ret_list = calloc(1, sizeof(**ret_list));
	if (!known)
		run_strings_free(TAKE_PTR(*ret_list));
	return err || (known && !*ret_list) ? -ENOMEM : 0;
}

/* ---- virtualisation ---- */

/* Names of hypervisors: in the CPU's instruction, in the firmware's tables, in a device tree. */
static const struct {
	const char *words;
	const char *name;
} hypervisors[] = {
	{"KVMKVMKVM", "KVM"},
	{"Linux KVM Hv", "KVM"},
	{"linux,kvm", "KVM"},
	{"TCGTCGTCGTCG", "QEMU"},
	{"VMwareVMware", "VMware"},
	{"Microsoft Hv", "Hyper-V"},
	{"XenVMMXenVMM", "Xen"},
	{"xen,xen", "Xen"},
	{"bhyve bhyve ", "bhyve"},
	{"VBoxVBoxVBox", "VirtualBox"},
	{"ACRNACRNACRN", "ACRN"},
	{"Apple VZ", "Apple"},
	{"Amazon EC2", "Amazon EC2"},
	{"Google Compute Engine", "Google Compute Engine"},
	{"OpenStack", "OpenStack"},
	{"VMware", "VMware"},
	{"VirtualBox", "VirtualBox"},
	{"Parallels", "Parallels"},
	{"Apple Virtualization", "Apple"},
	{"Microsoft Corporation Virtual Machine", "Hyper-V"},
	{"Xen", "Xen"},
	{"KVM", "KVM"},
	{"QEMU", "QEMU"},
};

static const char *hypervisor_in(const char *text)
{
	for (size_t i = 0; i < ARRAY_SIZE(hypervisors); i++)
		if (strstr(text, hypervisors[i].words))
			return hypervisors[i].name;
	return NULL;
}

/*
 * Return vendor and product from the firmware: of a virtual machine, or of the board. The product name of rented bare
 * metal contains "metal".
 */
static const char *hypervisor_of_firmware(const char *root)
{
	char vendor[128] = "", product[128] = "", both[260];

	(void)read_line(root, "/sys/class/dmi/id/sys_vendor", sizeof(vendor), vendor);
	(void)read_line(root, "/sys/class/dmi/id/product_name", sizeof(product), product);
	snprintf(both, sizeof(both), "%s %s", vendor, product);
	return strstr(product, "metal") ? NULL : hypervisor_in(both);
}

static const char *find_virtualisation(const char *root, const char *signature, const char *cpuinfo)
{
	const char *firmware = hypervisor_of_firmware(root), *name = hypervisor_in(signature);
	char tree[128] = "";
	bool flags, flag = has_flag(cpuinfo, "hypervisor", &flags);

	if (flags && !flag)
		return "none";
	if (!name && read_text(root, "/proc/device-tree/hypervisor/compatible", sizeof(tree), tree))
		name = hypervisor_in(tree);
	if (!name)
		name = firmware;
	/* Only x86 has the flag; without it and without a name there may be one or none. */
	return !name && flag ? "unnamed" : name;
}

/* ---- the whole ---- */

static int copy_text(const char *text, char **ret_copy)
{
	*ret_copy = text ? strdup(text) : NULL;
	return text && !*ret_copy ? -ENOMEM : 0;
}

int machine_read(const char *root, const char *signature, struct run_machine *ret_machine)
{
	struct run_machine machine = {0};
	char cpuinfo[TEXT_BYTES] = "", clock[64];
	int err;

	(void)read_text(root, CPU_FLAGS, sizeof(cpuinfo), cpuinfo);
	err = read_mitigations(root, cpuinfo, &machine.mitigations);
	if (!err && read_line(root, CLOCK_SOURCE, sizeof(clock), clock))
		err = copy_text(clock, &machine.clock_source);
	if (!err)
		err = copy_text(find_virtualisation(root, signature, cpuinfo),
				&machine.virtualisation);
	if (err)
		run_machine_clear(&machine);
	else
		*ret_machine = machine;
	return err;
}

/* Read the hypervisor's name from leaf 0x40000000, if the CPU says that there is one. */
static void read_signature(char ret_signature[static 13])
{
	ret_signature[0] = 0;
#ifdef __x86_64__
	unsigned int leaf, words[4];

	if (!__get_cpuid(1, &leaf, &words[0], &words[1], &words[2]) || !(words[1] & 1U << 31))
		return;
	__cpuid(0x40000000, leaf, words[0], words[1], words[2]);
	memcpy(ret_signature, words, 12);
	ret_signature[12] = 0;
#endif
}

const struct run_machine *machine_own(void)
{
	static struct run_machine machine;
	static bool was_read;
	char signature[13];

	if (!was_read) {
		read_signature(signature);
		(void)machine_read("", signature, &machine);
	}
	was_read = true;
	return &machine;
}
