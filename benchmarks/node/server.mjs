// The TypeScript SDK on stdio: node server.mjs COUNT
import { Server } from "@modelcontextprotocol/sdk/server/index.js";
import { StdioServerTransport } from "@modelcontextprotocol/sdk/server/stdio.js";
import { CallToolRequestSchema, ListToolsRequestSchema } from "@modelcontextprotocol/sdk/types.js";
import { call, declare } from "./tools.mjs";

const tools = declare(Number(process.argv[2]));
const server = new Server({ name: "node-peer", version: "1" }, { capabilities: { tools: {} } });
server.setRequestHandler(ListToolsRequestSchema, async () => ({ tools }));
server.setRequestHandler(CallToolRequestSchema, call);
await server.connect(new StdioServerTransport());
