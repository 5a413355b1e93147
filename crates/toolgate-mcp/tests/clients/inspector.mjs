// The inspector's own command line, in both eras. It begins anew for each request and shows no forms, so that approving
// and cancelling are left to the SDKs; what it can do, it does. In strict mode it refuses schemas that break clients.

import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [program, workspace] = process.argv.slice(2);
const launcher = 'node_modules/@modelcontextprotocol/inspector/clients/launcher/build/index.js';
const inspector = join(dirname(fileURLToPath(import.meta.url)), launcher);
const env = { HOME: join(workspace, '..', 'home'), PATH: process.env.PATH, USER: 'ada' };

// What it exits with when a call came back as an error.
const TOOL_IS_ERROR = 5;

function inspect(era, words, status = 0) {
    const options = ['--cli', '--quiet', '--format', 'json', '--protocol-era', era, '--cwd', workspace];
    const server = [program, 'serve', '--stdio'];
    const said = spawnSync(process.execPath, [inspector, ...options, ...words, ...server], { env, encoding: 'utf8' });
    assert.equal(said.status, status, `${said.stdout}\n${said.stderr}`);
    return JSON.parse(said.stdout).result;
}

function call(era, name, args, status) {
    const words = ['--method', 'tools/call', '--tool-name', name, '--tool-args-json', JSON.stringify(args)];
    return inspect(era, words, status);
}

function tell(era, find, replace) {
    const told = (part) => console.log(`ok ${era}: ${part}`);

    const { tools } = inspect(era, ['--strict', '--method', 'tools/list']);
    assert.ok(['read', 'edit', 'shell', 'delete'].every((name) => tools.some((tool) => tool.name === name)));
    told('lists tools, strictly');

    assert.equal(call(era, 'read', { path: 'hello.txt' }).content[0].text, `hello\n${find}\n`);
    told('reads');

    call(era, 'edit', { path: 'hello.txt', find, replace });
    assert.equal(readFileSync(join(workspace, 'hello.txt'), 'utf8'), `hello\n${replace}\n`);
    told('edits');

    assert.equal(call(era, 'shell', { command: 'echo from the sandbox' }).structuredContent.stdout, 'from the sandbox\n');
    told('runs a command');

    const refused = call(era, 'read', { path: '.env' }, TOOL_IS_ERROR);
    assert.ok(refused.content[0].text.includes('error[sensitive_path]'));
    told('is refused');
}

tell('legacy', 'world', 'moon');
tell('modern', 'moon', 'sun');
