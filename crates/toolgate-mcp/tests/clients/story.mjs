// What every real client does with the server, told once for both TypeScript SDKs: `Client`, `StdioClientTransport` and
// how to say what is answered to an elicitation. A line is printed for each part that went well.

import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';

const told = (part) => console.log(`ok ${part}`);
const pause = () => new Promise((resolve) => setTimeout(resolve, 50));
const textOf = (result) => result.content.filter((part) => part.type === 'text').map((part) => part.text).join('\n');

function isRunning(words) {
    try {
        execFileSync('pgrep', ['-f', words]);
        return true;
    } catch {
        return false;
    }
}

async function until(condition) {
    for (let round = 0; round < 2400; round += 1) {
        if (condition()) return;
        await pause();
    }
    assert.fail('it never happened');
}

export function serverParameters() {
    const [program, workspace] = process.argv.slice(2);
    const env = { HOME: join(workspace, '..', 'home'), PATH: process.env.PATH, USER: 'ada' };
    return { command: program, args: ['serve', '--stdio'], cwd: workspace, env };
}

// `options` turns a signal into what this SDK's `callTool` takes after the parameters.
export async function tell(client, asked, options) {
    const workspace = process.argv[3];
    const { tools } = await client.listTools();
    assert.ok(['read', 'edit', 'shell', 'delete'].every((name) => tools.some((tool) => tool.name === name)));
    told('lists tools');

    const call = (name, args, more) => client.callTool({ name, arguments: args }, ...(more ?? []));
    const hello = await call('read', { path: 'hello.txt' });
    assert.equal(hello.content[0].text, 'hello\nworld\n');
    told('reads');

    await call('edit', { path: 'hello.txt', find: 'world', replace: 'moon' });
    assert.equal(readFileSync(join(workspace, 'hello.txt'), 'utf8'), 'hello\nmoon\n');
    told('edits');

    const ran = await call('shell', { command: 'echo from the sandbox' });
    assert.equal(ran.structuredContent.stdout, 'from the sandbox\n');
    told('runs a command');

    const refused = await call('read', { path: '.env' });
    assert.ok(refused.isError && textOf(refused).includes('error[sensitive_path]'));
    told('is refused');

    const deleted = await call('delete', { path: 'hello.txt' });
    assert.ok(!deleted.isError && !existsSync(join(workspace, 'hello.txt')), JSON.stringify(deleted));
    assert.ok(asked[0].includes('delete hello.txt'));
    told('approves by elicitation');

    const sleep = `sleep 60.${process.pid}`;
    const stop = new AbortController();
    const cancelled = assert.rejects(call('shell', { command: sleep }, options(stop.signal)));
    await until(() => isRunning(sleep));
    stop.abort();
    await cancelled;
    await until(() => !isRunning(sleep));
    told('cancels');

    const long = await call('shell', { command: 'seq 1 30000' });
    let uri = long.content.find((part) => part.type === 'resource_link').uri;
    let whole = '';
    while (uri) {
        const [content] = (await client.readResource({ uri })).contents;
        whole += content.text;
        uri = content._meta?.['toolgate/next'];
    }
    assert.ok(whole.includes(Array.from({ length: 30000 }, (_, index) => `${index + 1}\n`).join('')));
    told('pages a large output');
}
