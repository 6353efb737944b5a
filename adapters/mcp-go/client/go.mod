module mcpace.dev/adapters/mcp-go-client

go 1.23

require github.com/mark3labs/mcp-go v{version}
