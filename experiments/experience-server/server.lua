-- SPDX-License-Identifier: MIT
-- An experience server: sessions of visitors, in memory shared by nginx's workers. A session is one
-- JSON document, which each request reads and writes as a whole. Nothing here measures time.
local cjson = require "cjson.safe"
local sessions = ngx.shared.sessions

local SESSION_SECONDS = 20 -- without a request, then the session ends
local EXPERIENCES = { "control", "grey", "tag", "tagAndGrey" }
local STATUSES = { committed = true, failed = true }

local handlers = {}

local function answer(status, value)
	ngx.status = status
	ngx.header["Content-Type"] = "application/json"
	local text = cjson.encode(value)
	ngx.header["Content-Length"] = #text
	ngx.print(text)
end

local function refuse(status, why)
	answer(status, { error = why })
end

local function body()
	ngx.req.read_body()
	return cjson.decode(ngx.req.get_body_data() or "")
end

local function load(id)
	local text = sessions:get(id)
	return text and cjson.decode(text)
end

local function store(id, session)
	local ok, why = sessions:set(id, cjson.encode(session), SESSION_SECONDS)
	return ok or refuse(507, why)
end

-- POST /sessions {"user": …}
function handlers.create()
	local wanted = body()
	if not wanted or not wanted.user then
		return refuse(400, "user is missing")
	end
	local id = ngx.md5(wanted.user .. ngx.now() .. math.random())
	local session = { user = wanted.user, requests = {}, attributes = { color = "#000000" } }
	if store(id, session) then
		answer(201, { id = id })
	end
end

-- POST /sessions/ID/target {"page": …}: the visitor's experience on this page
function handlers.target(session, id)
	local wanted = body()
	if not wanted or not wanted.page then
		return refuse(400, "page is missing")
	end
	local number = #session.requests + 1
	local chosen = EXPERIENCES[ngx.crc32_short(session.user .. wanted.page) % #EXPERIENCES + 1]
	session.requests[number] = { page = wanted.page, experience = chosen, status = "open" }
	ngx.header["X-Request"] = number
	if store(id, session) then
		answer(200, { request = number, experience = chosen })
	end
end

-- PUT /sessions/ID/requests/NUMBER {"status": "committed" or "failed"}
function handlers.finish(session, id, number)
	local wanted = body()
	local request = session.requests[tonumber(number)]
	if not request then
		return refuse(404, "no such request")
	end
	if not wanted or not STATUSES[wanted.status] then
		return refuse(400, "status is neither committed nor failed")
	end
	request.status = wanted.status
	if store(id, session) then
		answer(200, request)
	end
end

-- GET /sessions/ID/attributes/NAME
function handlers.read(session, _, name)
	local value = session.attributes[name]
	if not value then
		return refuse(404, "no such attribute")
	end
	answer(200, { value = value })
end

-- PUT /sessions/ID/attributes/NAME {"value": …}
function handlers.write(session, id, name)
	local wanted = body()
	if not wanted or not wanted.value then
		return refuse(400, "value is missing")
	end
	session.attributes[name] = wanted.value
	if store(id, session) then
		answer(200, { value = wanted.value })
	end
end

local ROUTES = {
	{ "POST", "^/sessions/(%x+)/target$", "target" },
	{ "PUT", "^/sessions/(%x+)/requests/(%d+)$", "finish" },
	{ "GET", "^/sessions/(%x+)/attributes/(%w+)$", "read" },
	{ "PUT", "^/sessions/(%x+)/attributes/(%w+)$", "write" },
}

local function serve()
	local method, path = ngx.req.get_method(), ngx.var.uri
	if path == "/sessions" and method == "POST" then
		return handlers.create()
	end
	for _, route in ipairs(ROUTES) do
		local id, rest = path:match(route[2])
		if id and method == route[1] then
			local session = load(id)
			if not session then
				return refuse(404, "no such session")
			end
			return handlers[route[3]](session, id, rest)
		end
	end
	refuse(404, "no such resource")
end

return serve
