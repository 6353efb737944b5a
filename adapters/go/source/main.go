// A server on the official Go SDK and net/http, written as the SDK's own examples; ../../README.md has the contract.
package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/signal"
	"runtime"
	"runtime/debug"
	"strconv"
	"strings"
	"syscall"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// unsupported is the exit code for requests that this release doesn't support.
const unsupported = 127

func main() {
	given, err := parse(os.Args[1:])
	if err == nil {
		err = run(given)
	}
	if err == nil {
		return
	}
	fmt.Fprintln(os.Stderr, err)
	if errors.Is(err, errUnsupported) {
		os.Exit(unsupported)
	}
	os.Exit(1)
}

var errUnsupported = errors.New("go-sdk can't do that")

// options are the options of the command line.
type options struct {
	host, mode string
	port       uint16
	stateless  bool
}

func parse(words []string) (*options, error) {
	given := &options{host: "127.0.0.1", mode: "json", stateless: true}
	for ; len(words) > 0; words = words[2:] {
		if len(words) == 1 {
			return nil, fmt.Errorf("%s needs a value", words[0])
		}
		option, value := words[0], words[1]
		switch option {
		case "--host":
			given.host = value
		case "--port":
			port, err := strconv.ParseUint(value, 10, 16)
			if err != nil {
				return nil, fmt.Errorf("--port %s is no port", value)
			}
			given.port = uint16(port)
		case "--mode":
			given.mode = value
		case "--state":
			if value != "stateless" && value != "stateful" {
				return nil, fmt.Errorf("--state is stateless or stateful, not %s", value)
			}
			given.stateless = value == "stateless"
		default:
			return nil, fmt.Errorf("%s is no option of this program", option)
		}
	}
	if given.mode != "json" && given.mode != "sse" {
		return nil, fmt.Errorf("%w: no mode %s", errUnsupported, given.mode)
	}
	return given, nil
}

func run(given *options) error {
	there, err := fromEnvironment()
	if err != nil {
		return err
	}
	server := mcp.NewServer(&mcp.Implementation{Name: "go-sdk", Version: version()}, nil)
	addCommon(server)
	if there != nil {
		addShop(server, there)
	}
	handler := mcp.NewStreamableHTTPHandler(
		func(*http.Request) *mcp.Server { return server },
		&mcp.StreamableHTTPOptions{Stateless: given.stateless, JSONResponse: given.mode == "json"},
	)
	routes := http.NewServeMux()
	routes.Handle("/mcp", handler)
	listener, err := net.Listen("tcp", net.JoinHostPort(given.host, strconv.Itoa(int(given.port))))
	if err != nil {
		return fmt.Errorf("can't listen: %w", err)
	}
	// Registered before the address is printed, because a goroutine may start much later.
	told := make(chan os.Signal, 1)
	signal.Notify(told, syscall.SIGTERM)
	over := make(chan error, 3)
	go func() { over <- http.Serve(listener, routes) }()
	go func() { over <- stdinEnds() }()
	go func() { <-told; over <- nil }()
	if err := sayReady(listener.Addr()); err != nil {
		return err
	}
	return <-over
}

// stdinEnds returns when stdin ends, also because the parent process has ended.
func stdinEnds() error {
	_, _ = io.Copy(io.Discard, os.Stdin)
	return nil
}

func sayReady(address net.Addr) error {
	return json.NewEncoder(os.Stdout).Encode(map[string]any{
		"ready": true, "sdk": "go", "version": version(), "pid": os.Getpid(),
		"url": fmt.Sprintf("http://%s/mcp", address), "workers": 1,
		"notes": []string{fmt.Sprintf("GOMAXPROCS %d", runtime.GOMAXPROCS(0))},
	})
}

// version is the release of the SDK that was linked into the program.
func version() string {
	if built, ok := debug.ReadBuildInfo(); ok {
		for _, module := range built.Deps {
			if module.Path == "github.com/modelcontextprotocol/go-sdk" {
				return strings.TrimPrefix(module.Version, "v")
			}
		}
	}
	return "unknown"
}
