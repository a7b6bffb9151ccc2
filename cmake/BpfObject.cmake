# bpf_object(TARGET [DEFINE NAME] SOURCE…): compiles each SOURCE with clang for BPF, links them into one object and
# makes TARGET, an INTERFACE library that offers <TARGET>.skel.h. NAME is defined for the preprocessor.
#
# Headers are tracked through the compiler's own dependency files. Nothing depends on the running kernel: its
# structures are declared in bpf/kernel.h and relocated at load (CO-RE).
find_program(BPF_CLANG NAMES clang-19 clang-18 clang-17 clang-16 clang
	DOC "clang that compiles bpf/, version 16 or newer" REQUIRED)
find_program(BPF_STRIP NAMES llvm-strip-19 llvm-strip-18 llvm-strip-17 llvm-strip-16 llvm-strip
	DOC "llvm-strip: drops DWARF, keeps BTF" REQUIRED)
find_program(BPFTOOL NAMES bpftool PATHS /usr/sbin
	DOC "bpftool that links the BPF object and makes the skeleton" REQUIRED)

execute_process(COMMAND ${BPF_CLANG} -dumpversion OUTPUT_VARIABLE BPF_CLANG_VERSION
	OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
if(BPF_CLANG_VERSION VERSION_LESS 16)
	message(FATAL_ERROR "${BPF_CLANG} is version ${BPF_CLANG_VERSION}; bpf/ needs 16 or newer")
endif()

if(CMAKE_SYSTEM_PROCESSOR MATCHES "aarch64|arm64")
	set(BPF_TARGET_ARCH arm64)
else()
	set(BPF_TARGET_ARCH x86)
endif()

set(BPF_FLAGS -g -O2 -target bpf -mcpu=v3 -D__TARGET_ARCH_${BPF_TARGET_ARCH} -std=gnu17
	-Wall -Wextra -Wno-unused-parameter $<$<BOOL:${SOJOURN_WERROR}>:-Werror>
	${SOJOURN_PATH_FLAGS}
	-I${CMAKE_SOURCE_DIR}/include $<$<BOOL:${CMAKE_SYSROOT}>:--sysroot=${CMAKE_SYSROOT}>
	# The multiarch directory of <asm/types.h>, which clang leaves out for other targets.
	-idirafter ${CMAKE_SYSROOT}/usr/include/${CMAKE_C_LIBRARY_ARCHITECTURE})

function(bpf_object target)
	cmake_parse_arguments(PARSE_ARGV 1 bpf "" DEFINE "")
	set(objects)
	foreach(source IN LISTS bpf_UNPARSED_ARGUMENTS)
		string(REGEX REPLACE "\\.c$" ".o" object ${CMAKE_CURRENT_BINARY_DIR}/${bpf_DEFINE}/${source})
		get_filename_component(folder ${object} DIRECTORY)
		add_custom_command(OUTPUT ${object}
			COMMAND ${CMAKE_COMMAND} -E make_directory ${folder}
			COMMAND ${BPF_CLANG} ${BPF_FLAGS} -I${CMAKE_CURRENT_SOURCE_DIR} $<$<BOOL:${bpf_DEFINE}>:-D${bpf_DEFINE}>
				-MD -MF ${object}.d -MT ${object}
				-c ${CMAKE_CURRENT_SOURCE_DIR}/${source} -o ${object}
			COMMAND ${BPF_STRIP} -g ${object}
			WORKING_DIRECTORY ${CMAKE_SOURCE_DIR} # for BTF's source lines, clang opens files by their mapped names
			DEPENDS ${source} DEPFILE ${object}.d COMMAND_EXPAND_LISTS VERBATIM
			COMMENT "BPF ${source} ${bpf_DEFINE}")
		list(APPEND objects ${object})
	endforeach()

	set(linked ${CMAKE_CURRENT_BINARY_DIR}/${target}.linked.o)
	set(skeleton ${CMAKE_CURRENT_BINARY_DIR}/${target}.skel.h)
	add_custom_command(OUTPUT ${skeleton}
		COMMAND ${BPFTOOL} gen object ${linked} ${objects}
		COMMAND ${BPFTOOL} gen skeleton ${linked} name ${target} > ${skeleton}
		DEPENDS ${objects} VERBATIM COMMENT "skeleton ${target}.skel.h")
	add_custom_target(${target}_skeleton DEPENDS ${skeleton})
	add_library(${target} INTERFACE)
	target_include_directories(${target} SYSTEM INTERFACE ${CMAKE_CURRENT_BINARY_DIR})
	target_link_libraries(${target} INTERFACE PkgConfig::LIBBPF)
	add_dependencies(${target} ${target}_skeleton)
endfunction()
