// The official Go SDK against a server; see ../README.md.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"slices"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// The SDK's newest revision of the legacy era; it offers no name for it.
const legacy = "2025-11-25"

type told struct {
	Protocol string    `json:"protocol"`
	Server   string    `json:"server"`
	Tools    []string  `json:"tools"`
	Echo     string    `json:"echo"`
	Progress []float64 `json:"progress"`
	Resource string    `json:"resource"`
	Prompt   string    `json:"prompt"`
	Missing  bool      `json:"missing"`
}

func main() {
	if err := run(context.Background(), os.Args[1], os.Args[2], os.Args[3:]); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func run(ctx context.Context, era, way string, target []string) error {
	var transport mcp.Transport
	if way == "http" {
		transport = &mcp.StreamableClientTransport{Endpoint: target[0]}
	} else {
		transport = &mcp.CommandTransport{Command: exec.Command(target[0], target[1:]...)}
	}
	var options *mcp.ClientSessionOptions
	if era == "legacy" {
		options = &mcp.ClientSessionOptions{ProtocolVersion: legacy}
	}
	// The SDK hands notifications and the reply that follows them to its callers side by side.
	progress := make(chan float64, 16)
	client := mcp.NewClient(&mcp.Implementation{Name: "interop-go", Version: "1.0.0"}, &mcp.ClientOptions{
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			progress <- request.Params.Progress
		},
	})
	session, err := client.Connect(ctx, transport, options)
	if err != nil {
		return fmt.Errorf("connect: %w", err)
	}
	told, err := converse(ctx, session, progress)
	if err != nil {
		return err
	}
	if err := session.Close(); err != nil {
		return fmt.Errorf("close: %w", err)
	}
	return json.NewEncoder(os.Stdout).Encode(told)
}

func converse(ctx context.Context, session *mcp.ClientSession, progress chan float64) (*told, error) {
	tools, err := session.ListTools(ctx, nil)
	if err != nil {
		return nil, fmt.Errorf("list tools: %w", err)
	}
	echo, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "echo", Arguments: map[string]any{"text": "hello ✓"}})
	if err != nil {
		return nil, fmt.Errorf("call echo: %w", err)
	}
	params := &mcp.CallToolParams{Name: "test_tool_with_progress", Arguments: map[string]any{}}
	params.SetProgressToken("progress-1")
	if _, err := session.CallTool(ctx, params); err != nil {
		return nil, fmt.Errorf("call test_tool_with_progress: %w", err)
	}
	resource, err := session.ReadResource(ctx, &mcp.ReadResourceParams{URI: "test://static-text"})
	if err != nil {
		return nil, fmt.Errorf("read: %w", err)
	}
	prompt, err := session.GetPrompt(ctx, &mcp.GetPromptParams{
		Name:      "test_prompt_with_arguments",
		Arguments: map[string]string{"arg1": "one", "arg2": "two"},
	})
	if err != nil {
		return nil, fmt.Errorf("get prompt: %w", err)
	}
	missing, err := session.CallTool(ctx, &mcp.CallToolParams{Name: "no_such_tool", Arguments: map[string]any{}})
	welcome := session.InitializeResult()
	result := &told{
		Protocol: welcome.ProtocolVersion,
		Server:   welcome.ServerInfo.Name,
		Echo:     echo.Content[0].(*mcp.TextContent).Text,
		Progress: []float64{},
		Resource: resource.Contents[0].Text,
		Prompt:   prompt.Messages[0].Content.(*mcp.TextContent).Text,
		Missing:  err != nil || missing.IsError,
	}
	for _, tool := range tools.Tools {
		result.Tools = append(result.Tools, tool.Name)
	}
	slices.Sort(result.Tools)
	for len(progress) > 0 {
		result.Progress = append(result.Progress, <-progress)
	}
	slices.Sort(result.Progress)
	return result, nil
}
