// The TypeScript SDK's second generation over HTTP: node http_server.mjs COUNT PORT json|sse stateful|stateless
import { randomUUID } from "node:crypto";
import { createServer } from "node:http";
import { NodeStreamableHTTPServerTransport, toNodeHandler } from "@modelcontextprotocol/node";
import { createMcpHandler, Server } from "@modelcontextprotocol/server";
import { call, declare } from "./tools.mjs";

const [count, port, answers, sessions] = process.argv.slice(2);
const tools = declare(Number(count));
const transports = new Map();

function makeServer() {
  const server = new Server({ name: "node-peer", version: "1" }, { capabilities: { tools: {} } });
  server.setRequestHandler("tools/list", async () => ({ tools }));
  server.setRequestHandler("tools/call", call);
  return server;
}

async function makeTransport() {
  const transport = new NodeStreamableHTTPServerTransport({
    sessionIdGenerator: sessions === "stateful" ? randomUUID : undefined,
    enableJsonResponse: answers === "json",
    onsessioninitialized: (id) => void transports.set(id, transport),
  });
  await makeServer().connect(transport);
  return transport;
}

const modern = toNodeHandler(createMcpHandler(makeServer, { legacy: "reject", responseMode: answers }));

createServer(async (request, response) => {
  if (request.headers["mcp-protocol-version"] === "2026-07-28") return modern(request, response);
  const transport = transports.get(request.headers["mcp-session-id"]) ?? (await makeTransport());
  return transport.handleRequest(request, response);
}).listen(Number(port), "127.0.0.1");
