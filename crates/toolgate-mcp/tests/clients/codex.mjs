// Codex itself, with the entry that `toolgate init --for codex` writes, and a scripted model on the loopback in place of its
// provider. Without a terminal (`codex exec`) it edits, runs commands and deletes what was allowed beforehand; in a terminal
// the person answers the form of an approval, and it is submitted.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [program, workspace] = process.argv.slice(2);
const codex = join(dirname(fileURLToPath(import.meta.url)), 'node_modules/@openai/codex/bin/codex.js');
const world = join(workspace, '..');
const told = (part) => console.log(`ok ${part}`);

// The directory for temporary files must not be in the home, nor the other way round.
const env = {
    HOME: join(world, 'home'), CODEX_HOME: join(world, 'home/.codex'), TMPDIR: join(world, 'tmp'), PATH: process.env.PATH,
    USER: 'ada', TERM: 'xterm-256color', LANG: 'C.UTF-8', MODEL_KEY: 'none',
};
const entry = join(workspace, '.codex/config.toml');

// Each turn is one call; after the last one the model says that it is done.
let turns = [];
const results = [];
const server = createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => { text += piece; });
    request.on('end', () => answer(text, response));
});

function answer(text, response) {
    const { input = [] } = text ? JSON.parse(text) : {};
    results.push(...input.filter((item) => item.type === 'function_call_output').slice(-1).map((item) => JSON.stringify(item.output)));
    const number = results.length;
    const next = turns.shift();
    const item = next
        ? { type: 'function_call', id: `fc_${number}`, call_id: `call_${Date.now()}_${number}`, namespace: 'mcp__toolgate', name: next[0], arguments: JSON.stringify(next[1]), status: 'completed' }
        : { type: 'message', id: `msg_${number}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'All done.', annotations: [] }] };
    const usage = { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 };
    const shown = { id: `resp_${number}`, object: 'response', status: 'in_progress', output: [] };
    const events = [
        { type: 'response.created', response: shown },
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { ...shown, status: 'completed', output: [item], usage } },
    ];
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
}

function options() {
    const provider = `{name="scripted",base_url="http://127.0.0.1:${server.address().port}/v1",env_key="MODEL_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}`;
    return ['-c', 'model_provider=scripted', '-c', `model_providers.scripted=${provider}`, '-c', 'check_for_update_on_startup=false', '-m', 'scripted'];
}

function wait(child) {
    return new Promise((resolve) => child.on('close', resolve));
}

async function exec(script) {
    turns = script;
    results.length = 0;
    const child = spawn(process.execPath, [codex, 'exec', '--skip-git-repo-check', ...options(), 'go on'], { cwd: workspace, env, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => { said += piece; });
    assert.equal(await wait(child), 0, said);
    return said;
}

// A terminal by `script`, into which the person types.
async function typed(script) {
    turns = script;
    const words = [process.execPath, codex, ...options()].map((word) => `'${word}'`).join(' ');
    const child = spawn('script', ['-qefc', `stty cols 130 rows 60; exec ${words}`, '/dev/null'], { cwd: workspace, env, stdio: ['pipe', 'pipe', 'inherit'] });
    let shown = '';
    child.stdout.on('data', (piece) => {
        shown += piece;
        // It asks what the terminal can do, and waits for an answer.
        if (`${piece}`.includes('\x1b[6n')) child.stdin.write('\x1b[1;1R');
        if (`${piece}`.includes('\x1b[c')) child.stdin.write('\x1b[?62c');
    });
    const until = async (what, condition) => {
        for (let round = 0; round < 1200; round += 1) {
            if (condition()) return;
            await new Promise((resolve) => setTimeout(resolve, 50));
        }
        assert.fail(`${what} never happened: ${shown.slice(-3000)}`);
    };
    return { child, until, shown: () => shown };
}

function begin() {
    for (const directory of [env.CODEX_HOME, env.TMPDIR]) mkdirSync(directory, { recursive: true });
    writeFileSync(join(env.CODEX_HOME, 'config.toml'), `[projects."${realpathSync(workspace)}"]\ntrust_level = "trusted"\n`);
    const made = spawnSync(program, ['init', '--for', 'codex', '--write'], { cwd: workspace, env, encoding: 'utf8' });
    assert.equal(made.status, 0, made.stderr);
    writeFileSync(join(workspace, 'old.txt'), 'old\n');
}

begin();
await new Promise((resolve) => server.listen(0, '127.0.0.1', resolve));
const work = [
    ['edit', { path: 'hello.txt', find: 'world', replace: 'moon' }],
    ['shell', { command: 'echo from the sandbox > made.txt' }],
    ['delete', { path: 'old.txt' }],
];
await exec([...work]);
assert.equal(readFileSync(join(workspace, 'hello.txt'), 'utf8'), 'hello\nmoon\n');
assert.equal(readFileSync(join(workspace, 'made.txt'), 'utf8'), 'from the sandbox\n');
assert.ok(existsSync(join(workspace, 'old.txt')), 'nobody was there to approve');
told('exec: edits, runs a command, and asks before it deletes');

const allowed = readFileSync(entry, 'utf8').replace('args = [', 'args = ["--allow", "permission=fs.delete", ');
writeFileSync(entry, allowed);
await exec([work[2]]);
assert.ok(!existsSync(join(workspace, 'old.txt')));
told('exec: deletes what was allowed beforehand');

writeFileSync(entry, allowed.replace('"--allow", "permission=fs.delete", ', ''));
const terminal = await typed([['delete', { path: 'made.txt' }]]);
await terminal.until('the prompt', () => terminal.shown().includes('Codex'));
// It reads keys from here on; a message that came too early would be lost.
await terminal.until('the message', () => {
    if (turns.length > 0 && !terminal.shown().includes('May this run?')) terminal.child.stdin.write('\r');
    if (!terminal.shown().includes('go on')) terminal.child.stdin.write('go on');
    return turns.length === 0;
});
await terminal.until('the form', () => terminal.shown().includes('submit'));
terminal.child.stdin.write('\r');
await terminal.until('the deletion', () => !existsSync(join(workspace, 'made.txt')));
terminal.child.kill();
told('terminal: the form is answered and submitted');
server.close();
process.exit(0);
