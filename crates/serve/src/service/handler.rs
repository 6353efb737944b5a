//! Handler of a resource, prompt or completion: one type-erased closure, plain or asynchronous.

use std::future::Future;
use std::sync::Arc;

use super::{Context, HandlerError};
use crate::guard::BoxFuture;

/// From an `I` to an `O`.
pub(crate) enum Handler<I, O> {
    Plain(PlainHandler<I, O>),
    Async(AsyncHandler<I, O>),
}

type PlainHandler<I, O> = Box<dyn Fn(I) -> Result<O, HandlerError> + Send + Sync>;
type AsyncHandler<I, O> = Box<dyn Fn(I, Context) -> BoxFuture<Result<O, HandlerError>> + Send + Sync>;

impl<I: Send + 'static, O: 'static> Handler<I, O> {
    pub(crate) fn plain(run: impl Fn(I) -> Result<O, HandlerError> + Send + Sync + 'static) -> Self {
        Handler::Plain(Box::new(run))
    }

    pub(crate) fn asynchronous<F, Fut>(run: F) -> Self
    where
        F: Fn(I, Context) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = Result<O, HandlerError>> + Send + 'static,
    {
        let run = Arc::new(run);
        Handler::Async(Box::new(move |input, context| {
            let run = Arc::clone(&run);
            // The author's function itself runs inside the future, so that a panic of it is caught like any other.
            Box::pin(async move { run(input, context).await })
        }))
    }
}
