// The tools that every adapter's server has.
package main

import (
	"context"
	"fmt"
	"math/big"
	"runtime"
	"strings"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
	"golang.org/x/sys/unix"
)

const largestPayload = 10_000_000

type (
	echoArguments struct {
		Text string `json:"text"`
	}
	greetArguments struct {
		Name string `json:"name"`
	}
	doubleArguments struct {
		N int64 `json:"n"`
	}
	waitArguments struct {
		Ms uint32 `json:"ms"`
	}
	workArguments struct {
		Us uint32 `json:"us"`
	}
	payloadArguments struct {
		Bytes int `json:"bytes"`
	}
)

func addCommon(server *mcp.Server) {
	add(server, "echo", "Says the text again", func(_ context.Context, given echoArguments) (string, error) {
		return given.Text, nil
	})
	add(server, "greet", "Greets", func(_ context.Context, given greetArguments) (string, error) {
		return "Hello, " + given.Name + "!", nil
	})
	add(server, "double", "Doubles a number", func(_ context.Context, given doubleArguments) (string, error) {
		n := big.NewInt(given.N)
		return n.Add(n, n).String(), nil
	})
	add(server, "wait", "Waits, and lets others work meanwhile", wait)
	add(server, "work", "Burns processor time", work)
	add(server, "payload", "Answers with so many bytes", payload)
}

// add registers a tool whose result is text only, without structured content.
func add[A any](server *mcp.Server, name, description string, tool func(context.Context, A) (string, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: name, Description: description},
		func(ctx context.Context, _ *mcp.CallToolRequest, given A) (*mcp.CallToolResult, any, error) {
			text, err := tool(ctx, given)
			if err != nil {
				return nil, nil, err
			}
			return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: text}}}, nil, nil
		})
}

func wait(ctx context.Context, given waitArguments) (string, error) {
	select {
	case <-time.After(time.Duration(given.Ms) * time.Millisecond):
		return "waited", nil
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

func work(_ context.Context, given workArguments) (string, error) {
	// The goroutine is locked to its thread, because it reads the clock of the thread.
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	end := burnt() + time.Duration(given.Us)*time.Microsecond
	for burnt() < end {
	}
	return "worked", nil
}

// burnt is the processor time of this thread, which excludes the work of other threads.
func burnt() time.Duration {
	var spent unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &spent); err != nil {
		panic(err) // Linux always has this clock.
	}
	return time.Duration(spent.Nano())
}

func payload(_ context.Context, given payloadArguments) (string, error) {
	if given.Bytes < 0 || given.Bytes > largestPayload {
		return "", fmt.Errorf("at most %d bytes", largestPayload)
	}
	return strings.Repeat("x", given.Bytes), nil
}
