//! Programs that end over a question that they do not know.

use std::sync::atomic::{AtomicBool, Ordering};

use super::{Open, Preferred};
use crate::version::Lifecycle;

/// Whether a program can be asked for its discovery, remembered across its starts.
#[derive(Debug, Default)]
pub struct KnowsDiscovery {
    /// It ended over the question, and did not when it was not asked.
    not: AtomicBool,
}

impl KnowsDiscovery {
    /// Opens a connection by `start`, which starts the program each time. Where that ended over the question, as `ended` says
    /// of the error, it is started once more and not asked, from then on each time.
    ///
    /// # Errors
    /// What `start` ended with last.
    pub async fn open<T, E, F: Future<Output = Result<T, E>>>(
        &self,
        open: Open,
        start: impl Fn(Open) -> F,
        ended: impl FnOnce(&E) -> bool,
    ) -> Result<T, E> {
        let by_session = Open { preferred: Preferred::Lifecycle(Lifecycle::Session), ..open.clone() };
        if self.not.load(Ordering::Relaxed) {
            return start(by_session).await;
        }
        match start(open).await {
            Err(error) if ended(&error) => {
                let opened = start(by_session).await?;
                // One that is broken ends either way: that says nothing.
                self.not.store(true, Ordering::Relaxed);
                Ok(opened)
            }
            outcome => outcome,
        }
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;

    use super::*;

    #[tokio::test]
    async fn a_program_that_ends_over_the_question_is_asked_no_more() {
        let (knows, starts) = (KnowsDiscovery::default(), RefCell::new(Vec::new()));
        let (open, ..) = crate::client::testing::open(Preferred::Newest);
        let session = Preferred::Lifecycle(Lifecycle::Session);
        let start = |is_broken: bool| {
            let starts = &starts;
            move |open: Open| {
                starts.borrow_mut().push(open.preferred);
                std::future::ready(if is_broken || open.preferred != session { Err("ended") } else { Ok(()) })
            }
        };
        let ended = |error: &&str| *error == "ended";
        assert!(knows.open(open.clone(), start(true), ended).await.is_err());
        assert!(knows.open(open.clone(), start(false), ended).await.is_ok());
        assert!(knows.open(open, start(false), ended).await.is_ok());
        let newest = Preferred::Newest;
        assert_eq!(*starts.borrow(), [newest, session, newest, session, session]);
    }
}
