// SPDX-License-Identifier: MIT
/*
 * The cost factors of BPF, read from the kernel's sentences: AMD, Intel, arm64, old and new
 * kernels.
 */
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "host/machine.h"
#include "sojourn/cleanup.h"
#include "sojourn/machine.h"
#include "unit.h"

#define CPU	      "sys/devices/system/cpu/vulnerabilities/"
#define CLOCK	      "sys/devices/system/clocksource/clocksource0/current_clocksource"
#define VENDOR	      "sys/class/dmi/id/sys_vendor"
#define PRODUCT	      "sys/class/dmi/id/product_name"
#define TREE	      "proc/device-tree/hypervisor/compatible"
#define CPUINFO	      "proc/cpuinfo"
#define METAL_FLAGS   "processor\t: 0\nflags\t\t: fpu vme ht sse\nbugs\t\t: spectre_v2\n"
#define VIRTUAL_FLAGS "processor\t: 0\nflags\t\t: fpu hypervisor lahf_lm\nbugs\t\t: spectre_v2\n"
#define ARM_FEATURES  "processor\t: 0\nFeatures\t: fp asimd evtstrm\n"

#define FILES 12

struct sample {
	const char *name;
	const char *signature;
	struct {
		const char *path;
		const char *text;
	} files[FILES];
	const char *mitigations;
	const char *clock;
	const char *virtualisation;
};

static const struct sample samples[] = {
	{"AMD Zen 4, 6.12, metal",
	 "",
	 {{CPU "spectre_v2",
	   "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; STIBP: always-on; "
	   "RSB filling; PBRSB-eIBRS: Not affected; BHI: Not affected\n"},
	  {CPU "retbleed", "Not affected\n"},
	  {CPU "spec_rstack_overflow", "Mitigation: Safe RET\n"},
	  {CPU "meltdown", "Not affected\n"},
	  {CLOCK, "tsc\n"},
	  {CPUINFO, METAL_FLAGS},
	  {VENDOR, "Dell Inc.\n"},
	  {PRODUCT, "PowerEdge R7625\n"}},
	 "enhanced IBRS, Safe RET",
	 "tsc",
	 "none"},
	{"AMD Zen 2, 6.1, guest",
	 "KVMKVMKVM",
	 {{CPU "spectre_v2",
	   "Mitigation: Retpolines, IBPB: conditional, IBRS_FW, STIBP: conditional, "
	   "RSB filling, PBRSB-eIBRS: Not affected\n"},
	  {CPU "retbleed",
	   "Mitigation: untrained return thunk; SMT enabled with STIBP protection\n"},
	  {CPU "spec_rstack_overflow", "Mitigation: safe RET\n"},
	  {CLOCK, "kvm-clock\n"},
	  {CPUINFO, VIRTUAL_FLAGS},
	  {VENDOR, "QEMU\n"},
	  {PRODUCT, "Standard PC (Q35 + ICH9, 2009)\n"}},
	 "retpolines, untrained return thunks, Safe RET",
	 "kvm-clock",
	 "KVM"},
	{"AMD, microcode missing",
	 "VMwareVMware",
	 {{CPU "spectre_v2", "Mitigation: Retpolines; STIBP: disabled; RSB filling\n"},
	  {CPU "spec_rstack_overflow", "Vulnerable: Microcode, no safe RET\n"},
	  {CPUINFO, VIRTUAL_FLAGS}},
	 "retpolines",
	 "not known",
	 "VMware"},
	{"AMD, Safe RET without microcode",
	 "Microsoft Hv",
	 {{CPU "spec_rstack_overflow", "Vulnerable: Safe RET, no microcode\n"},
	  {CPUINFO, VIRTUAL_FLAGS}},
	 "Safe RET",
	 "not known",
	 "Hyper-V"},
	{"AMD, IBPB on VMEXIT is not at entry",
	 "",
	 {{CPU "spec_rstack_overflow", "Mitigation: IBPB on VMEXIT only\n"},
	  {CPU "retbleed", "Mitigation: IBPB; SMT disabled\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "IBPB at kernel entry",
	 "not known",
	 "none"},
	{"Intel Sapphire Rapids, 6.12",
	 "",
	 {{CPU "spectre_v2",
	   "Mitigation: Enhanced / Automatic IBRS; IBPB: conditional; PBRSB-eIBRS: SW sequence; "
	   "BHI: BHI_DIS_S\n"},
	  {CPU "retbleed", "Not affected\n"},
	  {CPU "spec_rstack_overflow", "Not affected\n"},
	  {CPU "indirect_target_selection", "Not affected\n"},
	  {CLOCK, "tsc\n"},
	  {CPUINFO, "processor\t: 0\nflags\t\t: fpu ibtx vibt\nbugs\t\t: ibt\n"}},
	 "enhanced IBRS, BHI_DIS_S",
	 "tsc",
	 "none"},
	{"Intel with IBT in use",
	 "",
	 {{CPU "spectre_v2", "Mitigation: Enhanced IBRS, IBPB: conditional, RSB filling\n"},
	  {CPUINFO, "processor\t: 0\nflags\t\t: fpu user_shstk ibt md_clear\n"}},
	 "enhanced IBRS, IBT",
	 "not known",
	 "none"},
	{"Intel Skylake, call depth tracking",
	 "",
	 {{CPU "spectre_v2",
	   "Mitigation: Retpolines; IBPB: conditional; IBRS_FW; BHI: Not affected\n"},
	  {CPU "retbleed", "Mitigation: Stuffing\n"},
	  {CPU "indirect_target_selection", "Mitigation: Retpolines, Stuffing RSB\n"},
	  {CPU "meltdown", "Mitigation: PTI\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "retpolines, call depth tracking, page table isolation",
	 "not known",
	 "none"},
	{"Intel Cascade Lake, ITS",
	 "",
	 {{CPU "spectre_v2", "Mitigation: Enhanced / Automatic IBRS; BHI: SW loop, KVM: SW loop\n"},
	  {CPU "indirect_target_selection", "Mitigation: Aligned branch/return thunks\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "enhanced IBRS, BHB cleared at kernel entry, aligned branch and return thunks",
	 "not known",
	 "none"},
	{"Linux 5.10",
	 "",
	 {{CPU "spectre_v2",
	   "Mitigation: Full generic retpoline, IBPB: conditional, STIBP: disabled, RSB filling\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "retpolines",
	 "not known",
	 "none"},
	{"Linux 5.10 on AMD",
	 "",
	 {{CPU "spectre_v2", "Mitigation: Full AMD retpoline, IBPB: conditional\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "LFENCE before indirect branches",
	 "not known",
	 "none"},
	{"mitigations=off",
	 "",
	 {{CPU "spectre_v2", "Vulnerable; IBPB: disabled; STIBP: disabled; PBRSB-eIBRS: "
			     "Vulnerable; BHI: Vulnerable\n"},
	  {CPU "spec_rstack_overflow", "Vulnerable\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "none that BPF programs pay for",
	 "not known",
	 "none"},
	{"not affected",
	 "",
	 {{CPU "spectre_v2", "Not affected\n"},
	  {CPU "retbleed", "Not affected\n"},
	  {CPU "meltdown", "Not affected\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "none that BPF programs pay for",
	 "not known",
	 "none"},
	{"hardened JIT",
	 "",
	 {{CPU "spectre_v2", "Not affected\n"},
	  {"proc/sys/net/core/bpf_jit_harden", "2\n"},
	  {"proc/sys/net/core/bpf_jit_enable", "1\n"},
	  {CPUINFO, METAL_FLAGS}},
	 "hardened JIT",
	 "not known",
	 "none"},
	{"arm64, Neoverse N1, guest",
	 "",
	 {{CPU "spectre_v2", "Mitigation: CSV2, BHB\n"},
	  {CPU "meltdown", "Not affected\n"},
	  {CLOCK, "arch_sys_counter\n"},
	  {CPUINFO, ARM_FEATURES},
	  {VENDOR, "Amazon EC2\n"},
	  {PRODUCT, "m6g.large\n"}},
	 "BHB cleared at kernel entry",
	 "arch_sys_counter",
	 "Amazon EC2"},
	{"arm64, rented metal",
	 "",
	 {{CPU "spectre_v2", "Mitigation: CSV2, but not BHB\n"},
	  {CPUINFO, ARM_FEATURES},
	  {VENDOR, "Amazon EC2\n"},
	  {PRODUCT, "m6g.metal\n"}},
	 "none that BPF programs pay for",
	 "not known",
	 "not known"},
	{"arm64, Cortex-A72, device tree",
	 "",
	 {{CPU "spectre_v2", "Mitigation: Branch predictor hardening, BHB\n"},
	  {CPU "meltdown", "Mitigation: PTI\n"},
	  {CPUINFO, ARM_FEATURES},
	  {TREE, "linux,kvm"}},
	 "branch predictor hardened at kernel entry, BHB cleared at kernel entry, page table "
	 "isolation",
	 "not known",
	 "KVM"},
	{"a hypervisor without a name",
	 "",
	 {{CPU "spectre_v2", "Mitigation: Retpolines\n"}, {CPUINFO, VIRTUAL_FLAGS}},
	 "retpolines",
	 "not known",
	 "unnamed"},
	{"nothing can be read", "", {{NULL, NULL}}, "not known", "not known", "not known"},
	{"no file says anything of the CPU",
	 "",
	 {{CPUINFO, "processor\t: 0\nflags\t\t: fpu ibt\n"}},
	 "not known",
	 "not known",
	 "none"},
};

static void write_file(const char *root, const char *path, const char *text)
{
	char whole[256];
	FILE *file;

	snprintf(whole, sizeof(whole), "%s/%s", root, path);
	for (char *slash = strchr(whole + strlen(root) + 1, '/'); slash;
	     slash = strchr(slash + 1, '/')) {
		*slash = 0;
		(void)mkdir(whole, 0700);
		*slash = '/';
	}
	file = fopen(whole, "w");
	assert_non_null(file);
	fputs(text, file);
	fclose(file);
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
	(void)st, (void)kind, (void)walk;
	return remove(path);
}

static void test_sample(const struct sample *sample)
{
	char root[] = "/tmp/sojourn-unit-XXXXXX";
	autofree char *found = NULL;
	struct run_machine machine;

	assert_non_null(mkdtemp(root));
	for (size_t i = 0; i < FILES && sample->files[i].path; i++)
		write_file(root, sample->files[i].path, sample->files[i].text);
	assert_int_equal(machine_read(root, sample->signature, &machine), 0);
	assert_int_equal(nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
	found = run_machine_mitigations(&machine);
	print_message("%s\n", sample->name);
	assert_string_equal(found, sample->mitigations);
	assert_string_equal(run_machine_clock(&machine), sample->clock);
	assert_string_equal(run_machine_virtualisation(&machine), sample->virtualisation);
	run_machine_clear(&machine);
	assert_false(run_machine_known(&machine));
}

static void kernels_sentences(void **state)
{
	for (size_t i = 0; i < ARRAY_SIZE(samples); i++)
		test_sample(&samples[i]);
}

static void of_two_hosts_the_same_stays(void **state)
{
	char *both[] = {"retpolines", "Safe RET", NULL}, *one[] = {"retpolines", NULL};
	const struct run_machine a = {both, "tsc", "KVM"}, b = {one, "tsc", "none"};
	struct run_machine copy, same;

	assert_int_equal(run_machine_copy(&a, &copy), 0);
	assert_int_equal(run_machine_copy(&a, &same), 0);
	run_machine_merge(&same, &a);
	assert_string_equal(same.mitigations[1], "Safe RET");
	run_machine_merge(&copy, &b);
	assert_null(copy.mitigations);
	assert_string_equal(copy.clock_source, "tsc");
	assert_null(copy.virtualisation);
	run_machine_clear(&copy);
	run_machine_clear(&same);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(kernels_sentences),
		cmocka_unit_test(of_two_hosts_the_same_stays),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
