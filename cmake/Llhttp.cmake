# llhttp, the HTTP/1 parser of Node.js: Debian packages its C sources and header, but no library.
find_path(LLHTTP_DIR llhttp.c PATHS /usr/share/llhttp /usr/local/share/llhttp
	DOC "llhttp's C sources (Debian: node-llhttp)" REQUIRED)
find_path(LLHTTP_INCLUDE_DIR llhttp.h PATHS /usr/share/include/llhttp /usr/include/llhttp
	DOC "llhttp's header" REQUIRED)

add_library(llhttp STATIC ${LLHTTP_DIR}/llhttp.c ${LLHTTP_DIR}/api.c ${LLHTTP_DIR}/http.c)
target_include_directories(llhttp SYSTEM PUBLIC ${LLHTTP_INCLUDE_DIR})
# Foreign code: its warnings are not our errors.
target_compile_options(llhttp PRIVATE -w)
target_link_libraries(llhttp PRIVATE sojourn_instruments sojourn_hardening)
