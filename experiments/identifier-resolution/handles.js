// SPDX-License-Identifier: MIT
// The JSON interface, in nginx: a file is an identifier, its content "TYPE DATA".
import fs from 'fs';

const NAME = /^\/api\/handles\/([a-z0-9]{1,64})$/;

function answer(r, status, object) {
    r.headersOut['Content-Type'] = 'application/json';
    r.return(status, JSON.stringify(object) + '\n');
}

function resolve(r, name, path) {
    let text;
    try {
        text = fs.readFileSync(path, 'utf8').trim();
    } catch (e) {
        return answer(r, 404, {responseCode: 100, handle: name});
    }
    const at = text.indexOf(' ');
    const value = {index: 1, type: text.slice(0, at), data: text.slice(at + 1)};
    answer(r, 200, {responseCode: 1, handle: name, values: [value]});
}

function create(r, name, path) {
    let value;
    try {
        value = JSON.parse(r.requestText).values[0];
        if (typeof value.type != 'string' || typeof value.data != 'string')
            throw new Error('type and data are text');
    } catch (e) {
        return answer(r, 400, {responseCode: 2, handle: name});
    }
    try {
        // wx: fail if the file exists
        fs.writeFileSync(path, `${value.type} ${value.data}\n`, {flag: 'wx'});
    } catch (e) {
        return answer(r, 409, {responseCode: 101, handle: name});
    }
    answer(r, 201, {responseCode: 1, handle: name});
}

function handle(r) {
    const match = NAME.exec(r.uri);
    if (!match)
        return answer(r, 404, {responseCode: 100});
    const path = `${r.variables.handles}/${match[1]}`;
    if (r.method == 'GET')
        return resolve(r, match[1], path);
    if (r.method == 'PUT')
        return create(r, match[1], path);
    answer(r, 405, {responseCode: 2});
}

export default {handle};
