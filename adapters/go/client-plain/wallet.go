package main

import "github.com/modelcontextprotocol/go-sdk/mcp"

// wallet is for releases without an OAuth client, or with one that is built only as an experiment.
type wallet struct{}

func (wallet) provider(*command) outcome { return outcome{err: noOAuth()} }

func (wallet) authorize(*mcp.StreamableClientTransport, *command) error { return noOAuth() }

func noOAuth() error { return unsupported("go-sdk %s has no OAuth client", version(sdkModule)) }
