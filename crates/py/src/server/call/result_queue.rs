//! Brings results from Python's threads back to the I/O thread of their call.
//!
//! tokio writes to an eventfd each time that another thread wakes a task of a runtime with one thread. Results therefore go through
//! one task of that runtime: the first result wakes it, and it takes all results that have arrived when it runs.

use std::cell::RefCell;

use tokio::runtime::{self, Handle, RuntimeFlavor};
use tokio::sync::{mpsc, oneshot};

type Delivery = Box<dyn FnOnce() + Send>;
type ResultQueue = mpsc::UnboundedSender<Delivery>;

thread_local! {
    /// The queue of the runtime that runs on this thread.
    static QUEUE: RefCell<Option<(runtime::Id, ResultQueue)>> = const { RefCell::new(None) };
}

/// Sends one result to the runtime that waits for it.
pub(crate) struct ResultSender<T> {
    sender: oneshot::Sender<T>,
    queue: Option<ResultQueue>,
}

/// A channel to the runtime of this thread. The result of a runtime with several threads takes no queue.
pub(crate) fn result_channel<T>() -> (ResultSender<T>, oneshot::Receiver<T>) {
    let (sender, receiver) = oneshot::channel();
    let handle = Handle::current();
    let has_one_thread = handle.runtime_flavor() == RuntimeFlavor::CurrentThread;
    (ResultSender { sender, queue: has_one_thread.then(|| queue_of(&handle)) }, receiver)
}

fn queue_of(handle: &Handle) -> ResultQueue {
    QUEUE.with_borrow_mut(|slot| {
        if let Some((id, queue)) = slot
            && *id == handle.id()
        {
            return queue.clone();
        }
        let (queue, mut deliveries) = mpsc::unbounded_channel::<Delivery>();
        handle.spawn(async move {
            while let Some(deliver) = deliveries.recv().await {
                deliver();
            }
        });
        slot.insert((handle.id(), queue)).1.clone()
    })
}

impl<T: Send + 'static> ResultSender<T> {
    /// Whether nobody waits for the result any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.sender.is_closed()
    }

    /// Sends the result. It is dropped where nobody waits.
    pub(crate) fn send(self, result: T) {
        let Self { sender, queue } = self;
        let deliver = move || drop(sender.send(result));
        match queue {
            Some(queue) => drop(queue.send(Box::new(deliver))),
            None => deliver(),
        }
    }
}
