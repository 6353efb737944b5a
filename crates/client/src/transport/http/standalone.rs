//! The standalone GET stream of the legacy revisions: what the server says outside of any reply.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderValue, StatusCode};
use tokio::sync::oneshot;

use super::events::ReplyEvents;
use super::session::HttpSession;
use crate::transport::task::BackgroundTask;

const WHAT: &str = "the standalone stream";
/// How long the session's begin waits for it at most: some servers send a stream's head with its first event.
const OPENING: Duration = Duration::from_millis(500);
/// How often in a row the stream may end without having brought anything.
const MOST_EMPTY: u32 = 5;

impl HttpSession {
    /// Holds the stream open in the background, until the session ends or the server has none. Returns once the server has
    /// answered for it, or is slow to: what a call makes it ask earlier would have no way here.
    pub(crate) async fn listen_stream(self: &Arc<Self>) -> BackgroundTask {
        let session = Arc::clone(self);
        let (is_open, opened) = oneshot::channel();
        let task = BackgroundTask::spawn(&self.inbound().runtime, async move { session.hold_open(is_open).await });
        // Either way calls can begin.
        let _ = tokio::time::timeout(OPENING, opened).await;
        task
    }

    async fn hold_open(self: Arc<Self>, is_open: oneshot::Sender<()>) {
        let mut is_open = Some(is_open);
        let mut last = None::<HeaderValue>;
        let (mut empty, mut delay) = (0, Duration::from_secs(1));
        while empty < MOST_EMPTY {
            let opened = self.open_stream(last.clone(), WHAT).await;
            if let Some(is_open) = is_open.take() {
                // The waiting side may have given up.
                let _ = is_open.send(());
            }
            if let Ok(mut open) = opened {
                if open.status != StatusCode::OK || !open.is_event_stream() {
                    // 405: it has no such stream. 404: the session is over. Both are found out by calls too.
                    return;
                }
                let mut events = ReplyEvents::new(self.limits());
                while let Ok(Some(event)) = events.next_message(&mut open).await {
                    empty = 0;
                    if event.kind() == "message" {
                        // A text that is no message is the server's fault; later messages still count.
                        drop(self.take_for(Bytes::from(event.data), None, None));
                    }
                }
                if let Some(id) = events.last_event_id() {
                    last = HeaderValue::try_from(id).ok();
                }
                delay = events.retry_delay();
            }
            empty += 1;
            tokio::time::sleep(delay).await;
        }
    }
}
