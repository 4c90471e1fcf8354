//! The proxy does to plain sockets what it says it does.

use std::io::ErrorKind;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};

use super::*;

const PATIENCE: Duration = Duration::from_secs(20);

/// A server, the proxy before it, and a connection through both, the way a foot and its hub have one.
struct Stage {
    server: TcpListener,
    proxy: FaultProxy,
}

impl Stage {
    async fn new(plan: Plan, link: Link) -> Self {
        let server = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let proxy = FaultProxy::start_on(&server.local_addr().unwrap().to_string(), plan, link).await.unwrap();
        Self { server, proxy }
    }

    /// The foot's end, and the hub's.
    async fn connect(&self) -> (TcpStream, TcpStream) {
        let foot = TcpStream::connect(self.proxy.url().trim_start_matches("http://")).await.unwrap();
        let (hub, _) = tokio::time::timeout(PATIENCE, self.server.accept()).await.unwrap().unwrap();
        (foot, hub)
    }
}

/// All that comes until the end, and whether the end was an orderly one.
async fn rest(stream: &mut TcpStream) -> (Vec<u8>, bool) {
    let (mut all, mut buffer) = (Vec::new(), [0; 4096]);
    loop {
        match tokio::time::timeout(PATIENCE, stream.read(&mut buffer)).await.unwrap() {
            Ok(0) => return (all, true),
            Ok(count) => all.extend_from_slice(&buffer[..count]),
            Err(error) => {
                assert_eq!(error.kind(), ErrorKind::ConnectionReset);
                return (all, false);
            }
        }
    }
}

async fn hears(stream: &mut TcpStream, what: &[u8]) {
    let mut buffer = vec![0; what.len()];
    tokio::time::timeout(PATIENCE, stream.read_exact(&mut buffer)).await.unwrap().unwrap();
    assert_eq!(buffer, what);
}

#[tokio::test]
async fn in_fine_weather_bytes_and_ends_pass_both_ways() {
    let stage = Stage::new(Plan::calm(), Link::default()).await;
    let (mut foot, mut hub) = stage.connect().await;
    foot.write_all(b"up").await.unwrap();
    hears(&mut hub, b"up").await;
    foot.shutdown().await.unwrap();
    assert_eq!(rest(&mut hub).await, (Vec::new(), true));
    hub.write_all(b"down").await.unwrap();
    drop(hub);
    assert_eq!(rest(&mut foot).await, (b"down".to_vec(), true));
    assert_eq!((stage.proxy.counts().total(), stage.proxy.counts().connections()), (0, 1));
}

#[tokio::test]
async fn cuts_and_half_closes_are_seen_by_those_they_are_meant_for() {
    let stage = Stage::new(Plan::calm(), Link::default()).await;
    for (fault, orderly) in [(Fault::Reset, false), (Fault::Close, true)] {
        let (mut foot, mut hub) = stage.connect().await;
        foot.write_all(b"up").await.unwrap();
        hears(&mut hub, b"up").await;
        stage.proxy.inject(fault);
        assert_eq!(rest(&mut foot).await, (Vec::new(), orderly), "{fault:?}");
        assert_eq!(rest(&mut hub).await, (Vec::new(), orderly), "{fault:?}");
        assert_eq!(stage.proxy.counts().of(fault), 1);
    }
    for fault in [Fault::HalfCloseUp, Fault::HalfCloseDown] {
        let (mut foot, mut hub) = stage.connect().await;
        foot.write_all(b"up").await.unwrap();
        hears(&mut hub, b"up").await;
        let (from, to) = if fault == Fault::HalfCloseUp { (&mut foot, &mut hub) } else { (&mut hub, &mut foot) };
        stage.proxy.inject(fault);
        assert_eq!(rest(to).await, (Vec::new(), true), "{fault:?}");
        from.write_all(b"into the void").await.unwrap();
        to.write_all(b"the other way").await.unwrap();
        hears(from, b"the other way").await;
    }
}

#[tokio::test]
async fn a_truncation_ends_within_what_is_sent_next() {
    let stage = Stage::new(Plan::calm(), Link::default()).await;
    for fault in [Fault::TruncateUp, Fault::TruncateDown] {
        let (mut foot, mut hub) = stage.connect().await;
        foot.write_all(b"up").await.unwrap();
        hears(&mut hub, b"up").await;
        let (from, to) = if fault == Fault::TruncateUp { (&mut foot, &mut hub) } else { (&mut hub, &mut foot) };
        stage.proxy.inject(fault);
        while stage.proxy.counts().of(fault) == 0 {
            tokio::task::yield_now().await;
        }
        from.write_all(b"1234567890").await.unwrap();
        let (heard, _) = rest(to).await;
        assert_eq!(heard, b"12345", "{fault:?}");
    }
}

/// Old connections overlap new ones: the hub hears the old one last.
#[tokio::test]
async fn a_stranded_connection_ends_after_the_next_one_is_up() {
    let stage = Stage::new(Plan::calm(), Link::default()).await;
    let (mut foot, mut old) = stage.connect().await;
    foot.write_all(b"first").await.unwrap();
    hears(&mut old, b"first").await;
    stage.proxy.inject(Fault::Strand);
    while stage.proxy.counts().of(Fault::Strand) == 0 {
        tokio::task::yield_now().await;
    }
    foot.write_all(b"last words").await.unwrap();
    assert_eq!(rest(&mut foot).await, (Vec::new(), false));
    let mut nothing = [0];
    let silent = tokio::time::timeout(Duration::from_millis(300), old.read(&mut nothing)).await;
    assert!(silent.is_err(), "the hub's side stays open and silent: {silent:?}");
    let (mut foot, mut new) = stage.connect().await;
    foot.write_all(b"new").await.unwrap();
    hears(&mut new, b"new").await;
    assert_eq!(rest(&mut old).await.0, b"last words");
}

#[tokio::test]
async fn a_refused_connection_gets_nowhere() {
    let stage = Stage::new(Plan::calm(), Link::default()).await;
    stage.proxy.refuse_for(PATIENCE);
    let mut foot = TcpStream::connect(stage.proxy.url().trim_start_matches("http://")).await.unwrap();
    assert_eq!(rest(&mut foot).await, (Vec::new(), false));
    assert_eq!(stage.proxy.counts().of(Fault::Refuse), 1);
    stage.proxy.heal();
    let (mut foot, mut hub) = stage.connect().await;
    foot.write_all(b"up").await.unwrap();
    hears(&mut hub, b"up").await;
}

#[tokio::test]
async fn faults_come_by_themselves_until_it_heals() {
    let stage = Stage::new(Plan::raging(1), Link::default()).await;
    for _ in 0..2 {
        let (mut foot, hub) = stage.connect().await;
        rest(&mut foot).await;
        drop(hub);
    }
    stage.proxy.heal();
    assert!(stage.proxy.counts().total() >= 2, "{}", stage.proxy.counts());
    let (mut foot, mut hub) = stage.connect().await;
    let before = stage.proxy.counts().total();
    foot.write_all(b"up").await.unwrap();
    hears(&mut hub, b"up").await;
    assert_eq!(stage.proxy.counts().total(), before);
}

/// Bytes take the time that the rate says: neither less, nor much more for want of buffers.
#[tokio::test]
async fn a_slow_link_is_as_slow_as_it_says() {
    const RATE: u64 = 4_000_000;
    const BYTES: usize = 400_000;
    let ideal = Duration::from_secs_f64(BYTES as f64 * 8.0 / RATE as f64);
    let stage = Stage::new(Plan::calm(), Link::slow(RATE, Duration::from_millis(20))).await;
    let (mut foot, mut hub) = stage.connect().await;
    for _ in 0..2 {
        let begun = Instant::now();
        let (sent, heard) = tokio::join!(foot.write_all(&[7; BYTES]), async {
            let mut buffer = vec![0; BYTES];
            hub.read_exact(&mut buffer).await
        });
        sent.unwrap();
        heard.unwrap();
        let took = begun.elapsed();
        assert!(took >= ideal * 9 / 10, "{took:?} for {ideal:?}");
        assert!(took < ideal * 3, "{took:?} for {ideal:?}");
        std::mem::swap(&mut foot, &mut hub);
    }
}
