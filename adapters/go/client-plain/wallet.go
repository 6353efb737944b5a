package main

import "github.com/modelcontextprotocol/go-sdk/mcp"

// wallet is of releases without an OAuth client, or with one that isn't built unless its experiment is asked for.
type wallet struct{}

func (wallet) provider(*command) outcome { return outcome{err: noOAuth()} }

func (wallet) authorize(*mcp.StreamableClientTransport, *command) error { return noOAuth() }

func noOAuth() error { return unsupported("go-sdk %s has no OAuth client", version(sdkModule)) }
