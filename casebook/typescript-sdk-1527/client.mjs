// Calls a tool twenty times with an OAuth provider that keeps everything that it is given, the result of discovery as well.
import { Client } from "@modelcontextprotocol/sdk/client/index.js";
import { StreamableHTTPClientTransport } from "@modelcontextprotocol/sdk/client/streamableHttp.js";

class Provider {
  redirectUrl = "http://127.0.0.1/callback";
  clientMetadata = { client_name: "casebook", redirect_uris: ["http://127.0.0.1/callback"] };
  kept = { access_token: "expired", token_type: "Bearer", refresh_token: "first" };
  clientInformation = () => ({ client_id: "casebook" });
  tokens = () => this.kept;
  saveTokens = (tokens) => { this.kept = tokens; };
  discoveryState = () => this.discovered;
  saveDiscoveryState = (state) => { this.discovered = state; };
  redirectToAuthorization() { throw new Error("the renewal of the token failed"); }
  saveCodeVerifier() {}
  codeVerifier = () => "";
}

const client = new Client({ name: "casebook", version: "1.0.0" });
const authProvider = new Provider();
await client.connect(new StreamableHTTPClientTransport(new URL(process.env.MCP_URL), { authProvider }));
for (let call = 0; call < 20; call++) await client.callTool({ name: "echo", arguments: { text: `call ${call}` } });
await client.close();
