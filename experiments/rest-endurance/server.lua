-- SPDX-License-Identifier: MIT
-- A REST resource: items, each a JSON document in memory shared by nginx's workers.
local cjson = require "cjson.safe"
local items = ngx.shared.items

local handlers = {}

local function answer(status, value)
	local text = cjson.encode(value)
	ngx.status = status
	ngx.header["Content-Type"] = "application/json"
	ngx.header["Content-Length"] = #text
	ngx.print(text)
end

local function body()
	ngx.req.read_body()
	local value = cjson.decode(ngx.req.get_body_data() or "")
	return type(value) == "table" and value or nil
end

local function store(id, value)
	local ok, why = items:safe_set(id, cjson.encode(value))
	return ok or answer(507, { error = why })
end

-- POST /items {…}
function handlers.POST()
	local value = body()
	if not value then
		return answer(400, { error = "the body is no JSON object" })
	end
	local id = tostring(items:incr("last", 1, 0))
	value.id = id
	if store(id, value) then
		ngx.header["Location"] = "/items/" .. id
		answer(201, value)
	end
end

function handlers.GET(id, text)
	answer(200, cjson.decode(text))
end

function handlers.PUT(id)
	local value = body()
	if not value then
		return answer(400, { error = "the body is no JSON object" })
	end
	value.id = id
	if store(id, value) then
		answer(200, value)
	end
end

function handlers.DELETE(id)
	items:delete(id)
	ngx.status = 204
end

local function serve()
	local method, path = ngx.req.get_method(), ngx.var.uri
	if path == "/items" then
		if method == "POST" then
			return handlers.POST()
		elseif method == "GET" then
			return answer(200, { last = items:get("last") or 0 })
		end
	end
	local id = path:match("^/items/(%d+)$")
	local text = id and items:get(id)
	if text and handlers[method] and method ~= "POST" then
		return handlers[method](id, text)
	end
	answer(text and 405 or 404, { error = "no such resource" })
end

return serve
