// The client program for the official Go SDK; ../../README.md has the contract, ../../shared/go its common part.

package main

import (
	"context"
	"net/http"
	"os"
	"os/exec"
	"reflect"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const (
	sdkModule = "github.com/modelcontextprotocol/go-sdk"
	// legacy is the last revision with a handshake.
	legacy = "2025-11-25"
	modern = "2026-07-28"
)

func main() { run("go", &official{}) }

type official struct {
	session *mcp.ClientSession
	wallet  wallet
}

func (o *official) module() string  { return sdkModule }
func (o *official) connected() bool { return o.session != nil }

func (o *official) provider(ctx context.Context, asked *command) outcome {
	return o.wallet.provider(asked)
}

func (o *official) connect(ctx context.Context, asked *command) outcome {
	transport, err := o.transport(asked)
	if err != nil {
		return outcome{err: err}
	}
	options, err := sessionOptions(asked.Mode)
	if err != nil {
		return outcome{err: err}
	}
	client := mcp.NewClient(&mcp.Implementation{Name: "mcpace", Version: version(sdkModule)}, nil)
	start := now()
	session, err := client.Connect(ctx, transport, options)
	if err != nil {
		return failed(start, err)
	}
	end := now()
	said := session.InitializeResult()
	summary := serverSummary{ProtocolVersion: said.ProtocolVersion}
	if said.ServerInfo != nil {
		summary.ServerName, summary.ServerVersion = said.ServerInfo.Name, said.ServerInfo.Version
	}
	return outcome{
		start: start, end: end, result: summary,
		keep: func() { o.session = session }, drop: func() { session.Close() },
	}
}

func (o *official) transport(asked *command) (mcp.Transport, error) {
	if len(asked.Command) > 0 {
		server := exec.Command(asked.Command[0], asked.Command[1:]...)
		server.Env = os.Environ()
		for name, value := range asked.Env {
			server.Env = append(server.Env, name+"="+value)
		}
		return &mcp.CommandTransport{Command: server}, nil
	}
	transport := &mcp.StreamableClientTransport{Endpoint: asked.URL}
	switch asked.Auth.Kind {
	case "", "none":
	case "bearer":
		transport.HTTPClient = &http.Client{Transport: bearer(asked.Auth.Token)}
	case "oauth":
		if err := o.wallet.authorize(transport, asked); err != nil {
			return nil, err
		}
	default:
		return nil, unsupported("unknown kind of authorization: %s", asked.Auth.Kind)
	}
	return transport, nil
}

// sessionOptions requests a revision where the SDK supports that; without a mode the SDK's default applies.
func sessionOptions(mode string) (*mcp.ClientSessionOptions, error) {
	if mode == "" {
		return nil, nil
	}
	options := &mcp.ClientSessionOptions{}
	// The field is private or missing before 1.8.
	revision := reflect.ValueOf(options).Elem().FieldByName("ProtocolVersion")
	if !revision.IsValid() {
		if mode == "legacy" {
			return nil, nil
		}
		return nil, unsupported("mode %s needs a later release: this one chooses its revision itself", mode)
	}
	revision.SetString(map[string]string{"legacy": legacy, modern: modern}[mode])
	return options, nil
}

func (o *official) listTools(ctx context.Context) outcome {
	start := now()
	reply, err := o.session.ListTools(ctx, nil)
	end := now()
	return ended(start, end, err, func() any {
		return listed(reply.Tools, func(tool *mcp.Tool) string { return tool.Name }, reply.NextCursor != "")
	})
}

func (o *official) callTool(ctx context.Context, asked *command) outcome {
	params := &mcp.CallToolParams{Name: asked.Name, Arguments: asked.Arguments}
	start := now()
	reply, err := o.session.CallTool(ctx, params)
	end := now()
	return ended(start, end, err, func() any { return called(reply.IsError, reply.Content, textOf) })
}

func textOf(block mcp.Content) (string, bool) {
	if text, ok := block.(*mcp.TextContent); ok {
		return text.Text, true
	}
	return "", false
}

func (o *official) disconnect(context.Context) outcome {
	session := o.session
	o.session = nil
	start := now()
	err := session.Close()
	end := now()
	return ended(start, end, err, nothing)
}

// bearer puts a token on each request.
type bearer string

func (token bearer) RoundTrip(request *http.Request) (*http.Response, error) {
	request = request.Clone(request.Context())
	request.Header.Set("Authorization", "Bearer "+string(token))
	return http.DefaultTransport.RoundTrip(request)
}
