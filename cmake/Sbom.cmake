# sbom(KIND SBOM [NOTICES]): the files of cmake/sbom.py in the build folder, made whenever a program is linked.
find_program(SOJOURN_PYTHON python3 PATHS /usr/bin NO_DEFAULT_PATH REQUIRED)

function(sbom kind)
	list(TRANSFORM ARGN PREPEND ${CMAKE_BINARY_DIR}/ OUTPUT_VARIABLE files)
	set(programs sojourn-drive)
	if(TARGET sojourn)
		list(APPEND programs sojourn)
	endif()
	set(architecture ${CMAKE_SYSTEM_PROCESSOR})
	if(kind STREQUAL "package")
		execute_process(COMMAND dpkg --print-architecture OUTPUT_VARIABLE debian ERROR_QUIET
			OUTPUT_STRIP_TRAILING_WHITESPACE)
		if(debian)
			set(architecture ${debian})
		endif()
	endif()
	add_custom_command(OUTPUT ${files}
		COMMAND ${SOJOURN_SAME_OUTPUT} ${SOJOURN_PYTHON} ${CMAKE_SOURCE_DIR}/cmake/sbom.py ${PROJECT_VERSION}
			${architecture} ${kind} ${files}
		DEPENDS ${programs} ${CMAKE_SOURCE_DIR}/cmake/sbom.py VERBATIM COMMENT "SBOM")
	add_custom_target(sbom ALL DEPENDS ${files})
endfunction()
