// The TypeScript SDK of the era in which requests stand alone (@modelcontextprotocol/client 2.x).

import assert from 'node:assert/strict';

import { Client } from '@modelcontextprotocol/client';
import { StdioClientTransport } from '@modelcontextprotocol/client/stdio';

import { serverParameters, tell } from './story.mjs';

const asked = [];
const client = new Client(
    { name: 'typescript-modern', version: '1' },
    { capabilities: { elicitation: { form: {} } }, versionNegotiation: { mode: { pin: '2026-07-28' } } },
);
client.setRequestHandler('elicitation/create', (request) => {
    asked.push(request.params.message);
    return { action: 'accept', content: { answer: 'yes' } };
});
await client.connect(new StdioClientTransport(serverParameters()));
assert.equal(client.getNegotiatedProtocolVersion(), '2026-07-28');
await tell(client, asked, (signal) => [{ signal }]);
await client.close();
