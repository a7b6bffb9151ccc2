# What Debian calls hardening=+all, and Intel's CET or ARM's PAC and BTI, in everything that is built to be used:
# position-independent programs, all relocations read-only before main(), stack protector, stack clash protection,
# checked calls of the C library. tests/check/hardened.py reads the programs for it.
add_library(sojourn_hardening INTERFACE)
if(SOJOURN_SANITIZE)
	return() # their own checks are stricter, and do not go together with FORTIFY
endif()
# CMake's own way compiles static libraries as if they were shared ones, which costs time where they run.
target_compile_options(sojourn_hardening INTERFACE -fPIE)
target_link_options(sojourn_hardening INTERFACE $<IF:$<BOOL:${SOJOURN_STATIC}>,-static-pie,-pie>)
target_compile_options(sojourn_hardening INTERFACE -fstack-protector-strong)
include(CheckCCompilerFlag)
check_c_compiler_flag("-Werror -fstack-clash-protection" SOJOURN_HAS_STACK_CLASH) # not all of clang's machines do
if(SOJOURN_HAS_STACK_CLASH)
	target_compile_options(sojourn_hardening INTERFACE -fstack-clash-protection)
endif()
if(CMAKE_SYSTEM_PROCESSOR MATCHES "x86_64|amd64")
	target_compile_options(sojourn_hardening INTERFACE -fcf-protection)
elseif(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
	target_compile_options(sojourn_hardening INTERFACE -mbranch-protection=standard)
endif()
# It needs the optimiser. A distribution's own level, in CFLAGS, stands.
if(NOT CMAKE_BUILD_TYPE STREQUAL "Debug" AND NOT CMAKE_C_FLAGS MATCHES "_FORTIFY_SOURCE")
	target_compile_options(sojourn_hardening INTERFACE -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2)
endif()
target_link_options(sojourn_hardening INTERFACE -Wl,-z,relro,-z,now,-z,noexecstack)
