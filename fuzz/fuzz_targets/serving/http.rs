//! One connection in memory to an endpoint.

use mcpace_serve::http::Endpoint;
use tokio::io::{AsyncReadExt, AsyncWriteExt};

/// Sends the bytes, closes the sending side if `ends` is set, and reads to the end. The endpoint cuts off an endless
/// connection, in virtual time.
pub async fn exchange(endpoint: &Endpoint, bytes: &[u8], pieces: usize, ends: bool) -> Vec<u8> {
    // A small buffer, so that small pieces arrive separately.
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
    // An event stream that is never cut off sends keep-alives forever; one hour of them is enough.
    let all = async { tokio::join!(endpoint.serve(theirs), writing, reading).2 };
    tokio::time::timeout(std::time::Duration::from_secs(3600), all).await.unwrap_or_default()
}
