# Debian's hardening=+all, and Intel's CET or ARM's PAC and BTI, for all installed programs:
# position-independent, all relocations read-only before main(). They have the stack protector, stack clash
# protection and checked calls of the C library. tests/check/hardened.py checks the programs.
add_library(sojourn_hardening INTERFACE)
if(SOJOURN_SANITIZE)
	return() # their checks are stricter, and conflict with FORTIFY
endif()
# CMake's own way compiles static libraries like shared ones, which costs run time.
target_compile_options(sojourn_hardening INTERFACE -fPIE)
target_link_options(sojourn_hardening INTERFACE $<IF:$<BOOL:${SOJOURN_STATIC}>,-static-pie,-pie>)
target_compile_options(sojourn_hardening INTERFACE -fstack-protector-strong)
include(CheckCCompilerFlag)
check_c_compiler_flag("-Werror -fstack-clash-protection" SOJOURN_HAS_STACK_CLASH) # not on all of clang's architectures
if(SOJOURN_HAS_STACK_CLASH)
	target_compile_options(sojourn_hardening INTERFACE -fstack-clash-protection)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
	target_compile_options(sojourn_hardening INTERFACE -fcf-protection)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
	target_compile_options(sojourn_hardening INTERFACE -mbranch-protection=standard)
endif()
# FORTIFY needs the optimiser. A distribution's own level, in CFLAGS, prevails.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT CMAKE_C_FLAGS MATCHES "_FORTIFY_SOURCE")
	target_compile_options(sojourn_hardening INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
target_link_options(sojourn_hardening INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
