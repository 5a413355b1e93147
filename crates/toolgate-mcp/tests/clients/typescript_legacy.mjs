// The TypeScript SDK of the era with a handshake (@modelcontextprotocol/sdk 1.x).

import { Client } from '@modelcontextprotocol/sdk/client/index.js';
import { StdioClientTransport } from '@modelcontextprotocol/sdk/client/stdio.js';
import { ElicitRequestSchema } from '@modelcontextprotocol/sdk/types.js';

import { serverParameters, tell } from './story.mjs';

const asked = [];
const client = new Client({ name: 'typescript-legacy', version: '1' }, { capabilities: { elicitation: {} } });
client.setRequestHandler(ElicitRequestSchema, (request) => {
    asked.push(request.params.message);
    return { action: 'accept', content: { answer: 'yes' } };
});
await client.connect(new StdioClientTransport(serverParameters()));
await tell(client, asked, (signal) => [undefined, { signal }]);
await client.close();
