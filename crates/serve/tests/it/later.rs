//! A server whose `initialize` is answered later, as a delegate answers it. Its clients must not see a difference.

use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use mcpace_serve::{Channel, Context, Delegate, Delegated, Gone, Handled, Incoming, Outlet, Peer, Server};
use mcpace_wire::Revision;
use mcpace_wire::jsonrpc::Message;
use mcpace_wire::mcp::Method;
use serde_json::{Value, json, value::RawValue};
use tokio::sync::Semaphore;

/// Makes `server` answer `initialize` later, with the result of `twin`, as soon as `may_answer` has a permit.
pub(crate) fn answer_initialize_later(server: &Server, twin: Server, may_answer: Arc<Semaphore>) {
    assert!(server.delegate(Later { twin, may_answer }));
}

struct Later {
    twin: Server,
    may_answer: Arc<Semaphore>,
}

impl Delegate for Later {
    fn takes(&self, method: Method) -> bool {
        method == Method::Initialize
    }

    fn call(&self, context: Context) -> Delegated {
        let params = context.params().map_or("{}", |params| std::str::from_utf8(params).unwrap());
        let result = result_of_initialize(&self.twin, params);
        let may_answer = Arc::clone(&self.may_answer);
        Box::pin(async move {
            let _permit = may_answer.acquire().await.unwrap();
            // Not in the first poll either.
            tokio::task::yield_now().await;
            Ok(Bytes::from(result))
        })
    }
}

fn result_of_initialize(server: &Server, params: &str) -> String {
    struct Nowhere;
    impl Outlet for Nowhere {
        fn send(&self, _: Bytes) -> Result<(), Gone> {
            Err(Gone)
        }
    }
    impl Channel for Nowhere {
        fn open_outlet(&self) -> Arc<dyn Outlet> {
            Arc::new(Nowhere)
        }
    }
    let params = RawValue::from_string(params.to_owned()).unwrap();
    let body = Bytes::from(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}).to_string());
    let peer = Peer { revision: Revision::LATEST_LEGACY, session: None, principal: None };
    let handled = server.handle(Incoming {
        message: &Message::parse(&body).unwrap(),
        body: &body,
        outline: None,
        peer: &peer,
        channel: &Nowhere,
        received: Instant::now(),
        timed: false,
    });
    let Handled::Now(reply) = handled else { panic!("the twin answers at once") };
    let mut reply: Value = serde_json::from_slice(&reply.message).unwrap();
    reply["result"].take().to_string()
}
