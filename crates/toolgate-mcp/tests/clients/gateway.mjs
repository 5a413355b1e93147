// Claude Code and Codex themselves, each with Toolgate as its only MCP server and five real servers behind it, and a scripted model on
// the loopback in place of their providers. Each makes one call of every server; the answers come through the gate, and are on record.

import assert from 'node:assert/strict';
import { spawn, spawnSync } from 'node:child_process';
import { mkdirSync, readFileSync, readdirSync, realpathSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { dirname, join } from 'node:path';
import { fileURLToPath } from 'node:url';

const [program, workspace] = process.argv.slice(2);
const here = dirname(fileURLToPath(import.meta.url));
const servers = realpathSync(process.env.MCP_SERVERS ?? join(here, '../mcp-servers'));
const python = dirname(dirname(realpathSync(join(servers, 'python/bin/python'))));
const world = join(workspace, '..');
const told = (part) => console.log(`ok ${part}`);
const env = {
    HOME: join(world, 'home'), CODEX_HOME: join(world, 'home/.codex'), TMPDIR: join(world, 'tmp'), PATH: process.env.PATH,
    USER: 'ada', LANG: 'C.UTF-8', MODEL_KEY: 'none',
};

// What the model asks for, and a word of each answer.
const work = [
    ['time__get_current_time', { timezone: 'UTC' }, 'UTC'],
    ['files__read_text_file', { path: 'hello.txt' }, 'world'],
    ['memory__read_graph', {}, 'entities'],
    ['everything__get-sum', { a: 2, b: 40 }, '42'],
    ['git__git_status', { repo_path: realpathSync(workspace) }, 'hello.txt'],
];

function configure() {
    const node = (name) => ['node', join(servers, `node_modules/@modelcontextprotocol/${name}/dist/index.js`)];
    const commands = {
        time: [join(servers, 'python/bin/mcp-server-time')],
        files: [...node('server-filesystem'), '.'],
        memory: node('server-memory'),
        everything: [...node('server-everything'), 'stdio'],
        git: [join(servers, 'python/bin/mcp-server-git')],
    };
    const section = ([name, command]) => `[mcp.servers.${name}]\ncommand = ${JSON.stringify(command)}\nroots = ${JSON.stringify([servers, python])}\n`
        + (['files', 'git'].includes(name) ? 'directory = "workspace"\n' : '');
    const file = join(env.HOME, '.config/toolgate/config.toml');
    mkdirSync(dirname(file), { recursive: true });
    mkdirSync(env.CODEX_HOME, { recursive: true });
    mkdirSync(env.TMPDIR, { recursive: true });
    const rules = 'rules = [{ decision = "allow", permission = "mcp.call" }]\nmcp.listed_tools = 100\n';
    writeFileSync(file, rules + Object.entries(commands).map(section).join(''));
    for (const name of Object.keys(commands)) {
        const approved = spawnSync(program, ['--json', 'mcp', 'approve', name, '--yes'], { cwd: workspace, env, encoding: 'utf8' });
        assert.equal(approved.status, 0, `${name}: ${approved.stderr}`);
    }
    spawnSync('git', ['init', '-q', '.'], { cwd: workspace, env });
}

let turns = [];
let requests = [];
const model = createServer((request, response) => {
    let text = '';
    request.on('data', (piece) => { text += piece; });
    request.on('end', () => {
        const body = text ? JSON.parse(text) : {};
        if (request.method !== 'POST') return response.end('{}');
        if (request.url.includes('count_tokens')) return response.end('{"input_tokens":1}');
        requests.push(text);
        const events = request.url.includes('/responses') ? codexAnswer() : claudeAnswer(body);
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        return response.end(events.map((event) => `event: ${event.type}\ndata: ${JSON.stringify(event)}\n\n`).join(''));
    });
});

// Codex writes `_` for `-` in names of tools.
function codexAnswer() {
    const [next, number] = [turns.shift(), requests.length];
    const item = next
        ? { type: 'function_call', id: `fc_${number}`, call_id: `call_${number}`, namespace: 'mcp__toolgate', name: next[0].replaceAll('-', '_'), arguments: JSON.stringify(next[1]), status: 'completed' }
        : { type: 'message', id: `msg_${number}`, role: 'assistant', status: 'completed', content: [{ type: 'output_text', text: 'All done.', annotations: [] }] };
    const usage = { input_tokens: 1, input_tokens_details: { cached_tokens: 0 }, output_tokens: 1, output_tokens_details: { reasoning_tokens: 0 }, total_tokens: 2 };
    const shown = { id: `resp_${number}`, object: 'response', status: 'in_progress', output: [] };
    return [
        { type: 'response.created', response: shown },
        { type: 'response.output_item.added', output_index: 0, item },
        { type: 'response.output_item.done', output_index: 0, item },
        { type: 'response.completed', response: { ...shown, status: 'completed', output: [item], usage } },
    ];
}

function claudeAnswer(body) {
    // Requests without tools are the client's own, such as one for a title.
    const next = body.tools?.length > 3 ? turns.shift() : undefined;
    const number = requests.length;
    const start = next ? { type: 'tool_use', id: `toolu_${number}`, name: `mcp__toolgate__${next[0]}`, input: {} } : { type: 'text', text: '' };
    const delta = next ? { type: 'input_json_delta', partial_json: JSON.stringify(next[1]) } : { type: 'text_delta', text: 'All done.' };
    const usage = { input_tokens: 1, output_tokens: 1, cache_creation_input_tokens: 0, cache_read_input_tokens: 0 };
    const message = { id: `msg_${number}`, type: 'message', role: 'assistant', model: body.model, content: [], stop_reason: null, stop_sequence: null, usage };
    return [
        { type: 'message_start', message },
        { type: 'content_block_start', index: 0, content_block: start },
        { type: 'content_block_delta', index: 0, delta },
        { type: 'content_block_stop', index: 0 },
        { type: 'message_delta', delta: { stop_reason: next ? 'tool_use' : 'end_turn', stop_sequence: null }, usage },
        { type: 'message_stop' },
    ];
}

async function run(words, more) {
    turns = [...work];
    requests = [];
    const child = spawn(words[0], words.slice(1), { cwd: workspace, env: { ...env, ...more }, stdio: ['ignore', 'pipe', 'pipe'] });
    let said = '';
    for (const stream of [child.stdout, child.stderr]) stream.on('data', (piece) => { said += piece; });
    const code = await new Promise((resolve) => child.on('close', resolve));
    assert.equal(code, 0, said);
    const last = requests.filter((request) => request.includes('MCP server')).at(-1) ?? '';
    for (const [name, , word] of work) {
        const server = name.split('__')[0];
        assert.ok(last.includes(`what the MCP server \`${server}\` says`) && last.includes(word), `${name}: ${said}\n${last.slice(-3000)}`);
    }
    return said;
}

// The newest run of the workspace has every call, with its end.
function onRecord() {
    const runs = join(workspace, '.toolgate/runs');
    const newest = readdirSync(runs).sort().at(-1);
    const events = readFileSync(join(runs, newest, 'events.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line));
    for (const [name] of work) {
        const started = events.find((event) => event.kind === 'tool_call.started' && event.tool === name);
        assert.ok(started, `${name} is on record`);
        assert.ok(events.some((event) => event.kind === 'tool_call.completed' && event.tool_call_id === started.tool_call_id), name);
    }
}

configure();
await new Promise((resolve) => model.listen(0, '127.0.0.1', resolve));
const address = `http://127.0.0.1:${model.address().port}`;
const provider = `{name="scripted",base_url="${address}/v1",env_key="MODEL_KEY",wire_api="responses",request_max_retries=0,stream_max_retries=0}`;
writeFileSync(join(env.CODEX_HOME, 'config.toml'), `[projects."${realpathSync(workspace)}"]\ntrust_level = "trusted"\n`
    + `[mcp_servers.toolgate]\ncommand = "${program}"\nargs = ["serve", "--stdio"]\n`);
const codex = join(here, 'node_modules/@openai/codex/bin/codex.js');
await run([process.execPath, codex, 'exec', '--skip-git-repo-check', '-c', 'model_provider=scripted', '-c', `model_providers.scripted=${provider}`,
    '-c', 'check_for_update_on_startup=false', '-m', 'scripted', 'go on']);
onRecord();
told('codex: five servers behind one');

const config = join(world, 'claude-mcp.json');
writeFileSync(config, JSON.stringify({ mcpServers: { toolgate: { command: program, args: ['serve', '--stdio'] } } }));
await run([join(here, 'node_modules/.bin/claude'), '-p', 'go on', '--mcp-config', config, '--strict-mcp-config', '--allowedTools', 'mcp__toolgate'], {
    ANTHROPIC_BASE_URL: address, ANTHROPIC_API_KEY: 'dummy', DISABLE_TELEMETRY: '1', DISABLE_AUTOUPDATER: '1',
    CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC: '1',
});
onRecord();
told('claude code: five servers behind one');
model.close();
process.exit(0);
