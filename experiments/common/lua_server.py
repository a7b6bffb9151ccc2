# SPDX-License-Identifier: MIT
"""A stateful server in nginx: Debian's nginx with its Lua module, and a Lua file that returns the handler."""
import platform
import re
import subprocess
from pathlib import Path

from support.programs import Nginx

from .debian import unpacked, version

# With the module's own dependencies. cjson reads and writes JSON.
PACKAGES = ("libnginx-mod-http-lua", "libnginx-mod-http-ndk", "libluajit2-5.1-2", "libpcre3",
            "lua-resty-core", "lua-resty-lrucache", "lua-cjson")

MODULES = """\
load_module {root}/usr/lib/nginx/modules/ndk_http_module.so;
load_module {root}/usr/lib/nginx/modules/ngx_http_lua_module.so;"""

HTTP = """\
	lua_package_path "{folder}/?.lua;{root}/usr/share/lua/5.1/?.lua;;";
	lua_package_cpath "{root}/usr/lib/{triplet}/lua/5.1/?.so;;";
	{dictionaries}
	client_body_buffer_size 16k;
	client_max_body_size 16k;
	init_by_lua_block {{ serve = require "{module}" }}
"""

SERVER = "location {path} {{ {location} content_by_lua_block {{ serve() }} }}"


class LuaServer(Nginx):
    """LuaServer("…/server.lua", "/sessions", {"sessions": "128m"}): requests to `path` go to the function that
    the file returns. `location` is more configuration for it; further options are those of Nginx."""

    def __init__(self, file, path, dictionaries, location="", **options):
        root, file = unpacked(*PACKAGES), Path(file)
        triplet = f"{platform.machine()}-linux-gnu"
        super().__init__(
            modules=MODULES.format(root=root),
            http_block=HTTP.format(root=root, triplet=triplet, folder=file.parent, module=file.stem,
                                   dictionaries="".join(f"lua_shared_dict {name} {size};"
                                                        for name, size in dictionaries.items())),
            server=SERVER.format(path=path, location=location),
            env={"LD_LIBRARY_PATH": f"{root}/usr/lib/{triplet}:{root}/lib/{triplet}"}, **options)


def described():
    text = subprocess.run(["nginx", "-v"], capture_output=True, text=True, check=True).stderr
    return f"nginx {re.search(r'nginx/(.*)', text)[1].strip()} with " \
        f"libnginx-mod-http-lua {version('libnginx-mod-http-lua', *PACKAGES)}"
