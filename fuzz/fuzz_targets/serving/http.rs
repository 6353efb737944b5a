//! One connection in memory to an endpoint.

use mcpace_serve::http::Endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends, ends our side if so wanted, reads to the end. What never ends is cut off by the endpoint, in virtual time.
pub async fn exchange(endpoint: &Endpoint, bytes: &[u8], pieces: usize, ends: bool) -> Vec<u8> {
    // Small pieces are to arrive as such.
    let (ours, theirs) = tokio::io::duplex(pieces.clamp(256, 1 << 16));
    let (mut output, mut input) = tokio::io::split(ours);
    let writing = async {
        for piece in bytes.chunks(pieces.max(1)) {
            if input.write_all(piece).await.is_err() {
                break;
            }
            tokio::task::yield_now().await;
        }
        if ends {
            let _ = input.shutdown().await;
        }
    };
    let reading = async {
        let mut read = Vec::new();
        let _ = output.read_to_end(&mut read).await;
        read
    };
    // A stream of events that is never cut off has keep-alives without end: an hour of them is enough.
    let all = async { tokio::join!(endpoint.serve(theirs), writing, reading).2 };
    tokio::time::timeout(std::time::Duration::from_secs(3600), all).await.unwrap_or_default()
}
