//! stdio: any bytes in any pieces are answered with messages, and the connection ends by itself.
#![no_main]

mod serving;

use libfuzzer_sys::fuzz_target;
use mcpace_serve::stdio::{End, Options, serve_streams};
use mcpace_wire::jsonrpc::{Message, Payload};
use serving::{runtime, server};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

fuzz_target!(|input: &[u8]| {
    let Some((&pieces, bytes)) = input.split_first() else { return };
    let options = Options { line_limit: 2048, call_limit: 3, queue_limit: 4096, ..Options::default() };
    let written = runtime(async {
        let (mut ours, theirs) = tokio::io::duplex(64);
        let (their_input, their_output) = tokio::io::split(theirs);
        let serving = serve_streams(server(), options, their_input, their_output);
        let talking = async {
            let (mut output, mut input) = tokio::io::split(&mut ours);
            let writing = async {
                // One byte of the input is the seed of the pieces.
                for piece in bytes.chunks(usize::from(pieces).max(1)) {
                    if input.write_all(piece).await.is_err() {
                        break;
                    }
                }
                let _ = input.shutdown().await;
            };
            let mut written = Vec::new();
            let (_, read) = tokio::join!(writing, output.read_to_end(&mut written));
            read.expect("a pipe in memory can be read");
            written
        };
        let (end, written) = tokio::join!(serving, talking);
        // A tool that waits for its cancellation may reach the limit in virtual time.
        assert!(matches!(end.expect("pipes in memory don't fail"), End::Finished | End::CutOff));
        written
    });
    for line in written.split_inclusive(|&byte| byte == b'\n') {
        let line = line.strip_suffix(b"\n").expect("every line has its end");
        let payload = Payload::parse(line).expect("only messages are written");
        for message in payload.messages() {
            assert!(!matches!(message, Message::Notification(notification) if notification.method.is_empty()));
        }
    }
});
