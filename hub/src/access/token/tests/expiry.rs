//! The end that comes by itself.

use tokio::time::{Instant, timeout};

use super::*;
use crate::clock::Clock;

/// The time of day as the runtime's paused time tells it, so that waiting moves both.
struct RuntimeClock(Instant);

impl Clock for RuntimeClock {
    fn now(&self) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::try_from(self.0.elapsed()).unwrap()
    }
}

fn ending(at: Timestamp) -> NewToken {
    NewToken { expires_at: Some(at), ..request(Role::Viewer, Reach::HUB) }
}

#[tokio::test]
async fn an_expired_token_lets_nobody_in_even_before_the_timer_has_noticed() {
    let hub = Hub::new().await;
    let created = hub.tokens.create_first(ending(hub.clock.now() + SignedDuration::from_secs(60))).await.unwrap();
    let lets_in = || hub.tokens.authenticate(created.text.expose()).is_some();
    hub.clock.advance(SignedDuration::from_millis(59_999));
    assert!(lets_in());
    hub.clock.advance(SignedDuration::from_millis(1));
    assert!(!lets_in());
    assert!(hub.other().await.authenticate(created.text.expose()).is_none());
    let admin = hub.admin(Reach::HUB).await;
    assert!(hub.tokens.list(&admin).unwrap().contains(&created.info), "it is listed until it is revoked");
    hub.tokens.revoke(&created.info.id, &admin).await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn what_lives_on_a_token_ends_when_it_expires() {
    let start = Instant::now();
    let clock = Arc::new(RuntimeClock(start));
    let tokens = Tokens::load(Arc::new(MemoryStore::new(clock.clone())), clock.clone()).await.unwrap();
    let lifecycle = Lifecycle::new();
    tokens.follow(&lifecycle);
    let begin = async |seconds: i64| {
        let at = clock.now() + SignedDuration::from_secs(seconds);
        let created = tokens.create_first(ending(at)).await.unwrap();
        tokens.authenticate(created.text.expose()).unwrap().ended.clone()
    };
    let lasting = tokens.create_first(request(Role::Viewer, Reach::HUB)).await.unwrap();
    let (late, middle) = (begin(3600).await, begin(20).await);
    // Lets the timer set itself to what is there before a token comes that expires earlier.
    tokio::task::yield_now().await;
    let early = begin(2).await;

    let took = async |ended: CancellationToken| {
        timeout(Duration::from_hours(2), ended.cancelled()).await.unwrap();
        start.elapsed().as_secs()
    };
    assert_eq!(took(early).await, 2);
    assert_eq!(took(middle).await, 20);
    assert!(!late.is_cancelled());
    assert_eq!(took(late).await, 3600);
    assert!(!tokens.authenticate(lasting.text.expose()).unwrap().ended.is_cancelled());
    assert_eq!(lifecycle.shut_down(Duration::from_secs(1)).await, 0);
}

#[tokio::test(start_paused = true)]
async fn a_jump_of_the_clock_is_noticed_and_a_jump_back_revives_nothing() {
    let hub = Hub::new().await;
    let lifecycle = Lifecycle::new();
    // The timer alone: it must not need a store that answers.
    lifecycle.spawn("token-expiry", hub.tokens.clone().keep_expiry(lifecycle.soft().clone()));
    let created = hub.tokens.create_first(ending(hub.clock.now() + SignedDuration::from_hours(8))).await.unwrap();
    let principal = hub.tokens.authenticate(created.text.expose()).unwrap();
    // The time of day stands still here while the runtime waits: nothing expires by waiting alone.
    timeout(CLOCK_CHECK * 3, principal.ended.cancelled()).await.unwrap_err();

    hub.clock.advance(SignedDuration::from_hours(9));
    timeout(CLOCK_CHECK * 2, principal.ended.cancelled()).await.unwrap();
    hub.clock.advance(SignedDuration::from_hours(-9));
    assert!(hub.tokens.authenticate(created.text.expose()).is_none());
    assert_eq!(lifecycle.shut_down(Duration::from_secs(1)).await, 0);
}
