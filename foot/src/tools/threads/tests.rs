use super::*;
use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

/// Confines to whatever folders stand here, and counts.
#[derive(Clone)]
struct Fake {
    answer: Result<(), SandboxError>,
    applied: Arc<AtomicUsize>,
    folder: Arc<AtomicU64>,
}

impl Fake {
    fn new(answer: Result<(), SandboxError>) -> Self {
        Self { answer, applied: Arc::default(), folder: Arc::default() }
    }
}

impl Confinement for Fake {
    fn apply(&self) -> Result<(), SandboxError> {
        self.applied.fetch_add(1, Ordering::SeqCst);
        self.answer.clone()
    }

    fn folders(&self) -> Vec<Option<FolderId>> {
        vec![Some((0, self.folder.load(Ordering::SeqCst)))]
    }
}

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().build().unwrap()
}

fn here() -> Result<std::thread::ThreadId, Failure> {
    Ok(std::thread::current().id())
}

#[test]
fn a_thread_is_confined_once_and_used_again() {
    let fake = Fake::new(Ok(()));
    let threads = FileThreads::confined_by(fake.clone());
    runtime().block_on(async {
        let first = threads.run(here).await.unwrap();
        assert_ne!(first, std::thread::current().id());
        // It answers a moment before it is idle again: then a second one may come, but none for each call.
        for _ in 0..50 {
            threads.run(here).await.unwrap();
        }
    });
    assert!((1..=MAX_THREADS).contains(&fake.applied.load(Ordering::SeqCst)));
}

#[test]
fn work_runs_side_by_side_up_to_the_limit_and_the_rest_waits_its_turn() {
    let threads = FileThreads::confined_by(Fake::new(Ok(())));
    let (together, running, most) =
        (Arc::new(Barrier::new(MAX_THREADS)), Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let work = |_| {
        let (together, running, most) = (together.clone(), running.clone(), most.clone());
        threads.run(move || {
            most.fetch_max(running.fetch_add(1, Ordering::SeqCst) + 1, Ordering::SeqCst);
            together.wait();
            running.fetch_sub(1, Ordering::SeqCst);
            Ok(())
        })
    };
    let all = futures::future::join_all((0..3 * MAX_THREADS).map(work));
    assert!(runtime().block_on(all).into_iter().all(|done| done.is_ok()));
    assert_eq!(most.load(Ordering::SeqCst), MAX_THREADS);
}

#[test]
fn a_root_that_was_made_anew_gets_threads_of_its_own() {
    let fake = Fake::new(Ok(()));
    let threads = FileThreads::confined_by(fake.clone());
    runtime().block_on(async {
        let before = threads.run(here).await.unwrap();
        fake.folder.store(1, Ordering::SeqCst);
        // Whichever thread takes the work, it was started after the change.
        let after = threads.run(here).await.unwrap();
        assert_ne!(before, after);
        assert!(fake.applied.load(Ordering::SeqCst) >= 2);
    });
}

#[test]
fn work_that_panics_costs_its_call_alone() {
    let threads = FileThreads::confined_by(Fake::new(Ok(())));
    runtime().block_on(async {
        for _ in 0..2 * MAX_THREADS {
            let failure = threads.run(|| -> Result<(), Failure> { panic!("in a test") }).await.unwrap_err();
            assert_eq!((failure.code, failure.outcome), (ErrorCode::Internal, Outcome::Unknown));
        }
        assert!(threads.run(here).await.is_ok());
    });
}

#[test]
fn without_means_to_confine_the_rules_alone_hold_but_a_refusal_stops_everything() {
    let run = |error: SandboxError| {
        let threads = FileThreads::confined_by(Fake::new(Err(error)));
        runtime().block_on(threads.run(here))
    };
    assert!(run(SandboxError::Unsupported).is_ok());
    let refused = run(SandboxError::Refused("no".to_owned())).unwrap_err();
    assert_eq!((refused.code, refused.outcome), (ErrorCode::SandboxUnavailable, Outcome::NotRun));
}

#[test]
fn threads_end_with_their_pool_after_the_work_they_are_at() {
    let threads = FileThreads::confined_by(Fake::new(Ok(())));
    let pool = Arc::downgrade(&*threads.current());
    let (go, wait) = std::sync::mpsc::channel::<()>();
    let (done, finished) = std::sync::mpsc::channel();
    let work = threads.run(move || {
        wait.recv().unwrap();
        done.send(()).unwrap();
        Ok(())
    });
    runtime().block_on(async {
        // Polled once, it is with a thread; then nobody waits for it any more.
        assert!(futures::poll!(Box::pin(work)).is_pending());
    });
    drop(threads);
    go.send(()).unwrap();
    finished.recv().unwrap();
    while pool.strong_count() > 0 {
        std::thread::yield_now();
    }
}
