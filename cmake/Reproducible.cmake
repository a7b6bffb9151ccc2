# Builds of one commit have the same bytes, wherever the sources and the build folder are. So the output has no path of
# either, and no time of the build. tests/check/paths.py searches the programs for them; tools/reproducible builds twice.

# Debug information and messages name sources from the top of the tree. Of two matching prefixes the last one counts.
set(SOJOURN_PATH_FLAGS -ffile-prefix-map=${CMAKE_SOURCE_DIR}=. -ffile-prefix-map=${CMAKE_BINARY_DIR}=.)
add_compile_options(${SOJOURN_PATH_FLAGS} -Wdate-time)

# The date of man pages, packages and their files: SOURCE_DATE_EPOCH (reproducible-builds.org), or that of the newest
# entry in packaging/changelog. tools/package reads it from the cache.
set(epoch $ENV{SOURCE_DATE_EPOCH})
set(changelog ${CMAKE_SOURCE_DIR}/packaging/changelog)
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${changelog})
if(NOT epoch)
	file(STRINGS ${changelog} releases REGEX "^ -- .*>  ")
	list(GET releases 0 release)
	string(REGEX REPLACE "^.*>  " "" release "${release}")
	execute_process(COMMAND date -u -d ${release} +%s OUTPUT_VARIABLE epoch
		OUTPUT_STRIP_TRAILING_WHITESPACE COMMAND_ERROR_IS_FATAL ANY)
endif()
set(SOJOURN_EPOCH ${epoch} CACHE INTERNAL "Seconds since 1970 of the release")

# Runs programs whose output becomes a file of the package, so that locale, time zone and window do not change it.
set(SOJOURN_SAME_OUTPUT ${CMAKE_COMMAND} -E env --unset=COLUMNS SOURCE_DATE_EPOCH=${SOJOURN_EPOCH} LC_ALL=C.UTF-8
	TZ=UTC)
