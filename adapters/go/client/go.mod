module mcpace.dev/adapters/go-client

go 1.23.0

require github.com/modelcontextprotocol/go-sdk v{version}
