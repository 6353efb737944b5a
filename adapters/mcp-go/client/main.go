// The client program for mcp-go (mark3labs); ../../README.md has the contract, ../../shared/go its common part.

package main

import (
	"context"
	"os"

	"github.com/mark3labs/mcp-go/client"
	"github.com/mark3labs/mcp-go/client/transport"
	"github.com/mark3labs/mcp-go/mcp"
)

const (
	sdkModule = "github.com/mark3labs/mcp-go"
	// legacy is the last revision with a handshake.
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

func main() { run("mcp-go", &mark3labs{wallet: wallet{}}) }

type mark3labs struct {
	client *client.Client
	wallet wallet
}

func (m *mark3labs) module() string  { return sdkModule }
func (m *mark3labs) connected() bool { return m.client != nil }

func (m *mark3labs) provider(ctx context.Context, asked *command) outcome {
	return m.wallet.provider(asked)
}

func (m *mark3labs) connect(ctx context.Context, asked *command) outcome {
	revision, err := revisionOf(asked.Mode)
	if err != nil {
		return outcome{err: err}
	}
	made, err := m.maker(asked)
	if err != nil {
		return outcome{err: err}
	}
	request := mcp.InitializeRequest{}
	request.Params.ProtocolVersion = revision
	request.Params.ClientInfo = mcp.Implementation{Name: "mcpace", Version: version(sdkModule)}
	start := now()
	opened, reply, err := open(ctx, made, request, asked)
	if err != nil {
		return failed(start, err)
	}
	end := now()
	return outcome{
		start: start, end: end,
		result: serverSummary{reply.ProtocolVersion, reply.ServerInfo.Name, reply.ServerInfo.Version},
		keep:   func() { m.client = opened }, drop: func() { opened.Close() },
	}
}

// open starts a client and performs the handshake, and repeats both after an authorization, as in the SDK's example.
func open(
	ctx context.Context, made func() (*client.Client, error), request mcp.InitializeRequest, asked *command,
) (*client.Client, *mcp.InitializeResult, error) {
	opened, err := made()
	if err != nil {
		return nil, nil, err
	}
	// A client over stdio is started already, and returns an error.
	if len(asked.Command) == 0 {
		err = opened.Start(ctx)
		if client.IsOAuthAuthorizationRequiredError(err) {
			if err = authorize(ctx, client.GetOAuthHandler(err), &asked.Auth); err == nil {
				err = opened.Start(ctx)
			}
		}
	}
	var reply *mcp.InitializeResult
	if err == nil {
		reply, err = opened.Initialize(ctx, request)
	}
	if client.IsOAuthAuthorizationRequiredError(err) {
		if err = authorize(ctx, client.GetOAuthHandler(err), &asked.Auth); err == nil {
			reply, err = opened.Initialize(ctx, request)
		}
	}
	if err != nil {
		_ = opened.Close()
		return nil, nil, err
	}
	return opened, reply, nil
}

func (m *mark3labs) maker(asked *command) (func() (*client.Client, error), error) {
	if len(asked.Command) > 0 {
		environment := os.Environ()
		for name, value := range asked.Env {
			environment = append(environment, name+"="+value)
		}
		return func() (*client.Client, error) {
			return client.NewStdioMCPClient(asked.Command[0], environment, asked.Command[1:]...)
		}, nil
	}
	switch asked.Auth.Kind {
	case "", "none":
		return func() (*client.Client, error) { return client.NewStreamableHttpClient(asked.URL) }, nil
	case "bearer":
		headers := transport.WithHTTPHeaders(map[string]string{"Authorization": "Bearer " + asked.Auth.Token})
		return func() (*client.Client, error) { return client.NewStreamableHttpClient(asked.URL, headers) }, nil
	case "oauth":
		config, err := m.wallet.configuration(asked)
		if err != nil {
			return nil, err
		}
		return func() (*client.Client, error) { return client.NewOAuthStreamableHttpClient(asked.URL, config) }, nil
	default:
		return nil, unsupported("unknown kind of authorization: %s", asked.Auth.Kind)
	}
}

// revisionOf is the revision that the handshake requests: the SDK's latest, as in its examples, unless a mode names
// another.
func revisionOf(mode string) (string, error) {
	switch mode {
	case "":
		return mcp.LATEST_PROTOCOL_VERSION, nil
	case "legacy":
		return min(legacy, mcp.LATEST_PROTOCOL_VERSION), nil
	default:
		if mcp.LATEST_PROTOCOL_VERSION < modern {
			return "", unsupported("mode %s needs a later release: this one knows %s", mode, mcp.LATEST_PROTOCOL_VERSION)
		}
		return modern, nil
	}
}

func (m *mark3labs) listTools(ctx context.Context) outcome {
	start := now()
	reply, err := m.client.ListTools(ctx, mcp.ListToolsRequest{})
	end := now()
	return ended(start, end, err, func() any {
		return listed(reply.Tools, func(tool mcp.Tool) string { return tool.Name }, reply.NextCursor != "")
	})
}

func (m *mark3labs) callTool(ctx context.Context, asked *command) outcome {
	request := mcp.CallToolRequest{}
	request.Params.Name = asked.Name
	request.Params.Arguments = asked.Arguments
	start := now()
	reply, err := m.client.CallTool(ctx, request)
	end := now()
	return ended(start, end, err, func() any { return called(reply.IsError, reply.Content, textOf) })
}

func textOf(block mcp.Content) (string, bool) {
	if text, ok := block.(mcp.TextContent); ok {
		return text.Text, true
	}
	return "", false
}

func (m *mark3labs) disconnect(context.Context) outcome {
	leaving := m.client
	m.client = nil
	start := now()
	err := leaving.Close()
	end := now()
	return ended(start, end, err, nothing)
}
