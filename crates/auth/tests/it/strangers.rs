//! Tokens that somebody makes up, as many as he likes: who was let in before gets through all the same.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcpace_auth::{Failure, IntrospectionOptions, IntrospectionVerifier, Outage, Report, Secret};
use mcpace_serve::http::{TokenError, TokenVerifier as _};
use tokio::sync::{Notify, Semaphore};
use tokio::task::JoinHandle;

use crate::issuer::{BEGIN, Issuer, Manual, json as reply, limited, status};

const PLACES: usize = 4;

/// An issuer whose answers a test lets go one by one, and a verifier of few places before it.
struct Tried {
    verifier: Arc<IntrospectionVerifier>,
    clock: Arc<Manual>,
    heard: Arc<Mutex<Vec<Failure>>>,
    /// Tokens, in the order in which they were asked about.
    asked: Arc<Mutex<Vec<String>>>,
    came: Arc<Notify>,
    go: Arc<Semaphore>,
    _issuer: Issuer,
}

impl Tried {
    async fn new(change: impl FnOnce(&mut IntrospectionOptions)) -> Self {
        let (asked, came, go) = (Arc::default(), Arc::new(Notify::new()), Arc::new(Semaphore::new(0)));
        let its = (Arc::clone(&asked), Arc::clone(&came), Arc::clone(&go));
        let issuer = Issuer::start(move |question| {
            let (asked, came, go): (Arc<Mutex<Vec<String>>>, Arc<Notify>, Arc<Semaphore>) = its.clone();
            async move {
                let token = question.field("token").unwrap();
                asked.lock().unwrap().push(token.clone());
                came.notify_one();
                go.acquire().await.unwrap().forget();
                match token.as_str() {
                    "good" => reply(format!(r#"{{"active":true,"sub":"ada","exp":{}}}"#, BEGIN + 3_600)),
                    "away" => status(500),
                    _ => reply(r#"{"active":false}"#),
                }
            }
        })
        .await;
        let (clock, heard) = (Manual::new(), Arc::new(Mutex::new(Vec::new())));
        let mut options = IntrospectionOptions::new(format!("{}/i", issuer.url), "server", Secret::new("s"));
        options.clock = clock.clone();
        options.most_requests = PLACES;
        options.reach.time = Duration::from_secs(60);
        let (told, tells) = (Arc::clone(&heard), Arc::clone(&came));
        let report: Report = Arc::new(move |failure: &Failure| {
            told.lock().unwrap().push(failure.clone());
            tells.notify_one();
        });
        options.report = Some(report);
        change(&mut options);
        let verifier = Arc::new(IntrospectionVerifier::new(options).unwrap());
        Self { verifier, clock, heard, asked, came, go, _issuer: issuer }
    }

    fn begin(&self, token: impl Into<String>) -> JoinHandle<Result<String, TokenError>> {
        let (verifier, token) = (Arc::clone(&self.verifier), token.into());
        tokio::spawn(async move { verifier.verify(&token).await.map(|principal| principal.subject.to_string()) })
    }

    /// Lets as many strangers in as find a place, and so many more stand in line.
    async fn flood(&self, strangers: usize) -> Vec<JoinHandle<Result<String, TokenError>>> {
        let before = self.questions();
        let flood = (0..strangers).map(|number| self.begin(format!("stranger-{number}"))).collect();
        self.until(|tried| tried.questions() == before + PLACES).await;
        flood
    }

    /// Each question and each failure is something new to look at.
    async fn until(&self, is_so: impl Fn(&Self) -> bool) {
        limited("what is waited for", async {
            while !is_so(self) {
                self.came.notified().await;
            }
        })
        .await;
    }

    fn questions(&self) -> usize {
        self.asked.lock().unwrap().len()
    }

    /// The token that was asked about last.
    fn last(&self) -> Option<String> {
        self.asked.lock().unwrap().last().cloned()
    }

    /// How many found no place in the line.
    fn refused(&self) -> usize {
        let is_busy = |failure: &&Failure| matches!(failure, Failure::Unavailable(Outage::Busy { .. }));
        self.heard.lock().unwrap().iter().filter(is_busy).count()
    }
}

async fn verdict(of: JoinHandle<Result<String, TokenError>>) -> Result<String, TokenError> {
    limited("a verdict", of).await.unwrap()
}

#[tokio::test]
async fn who_was_let_in_before_goes_before_all_strangers() {
    const STRANGERS: usize = 2_000;
    let tried = Tried::new(|_| {}).await;
    tried.go.add_permits(1);
    assert_eq!(verdict(tried.begin("good")).await.as_deref(), Ok("ada"));
    // Its answer has to be got anew, and there are more strangers than may wait.
    tried.clock.pass(61);
    let flood = tried.flood(STRANGERS).await;
    tried.until(|tried| tried.refused() == STRANGERS - 1_024).await;
    assert_eq!(verdict(tried.begin("one-more")).await, Err(TokenError::Unavailable));
    let good = tried.begin("good");
    // One place gets free after the other. It is on its way to the line meanwhile, which takes no time that tells.
    let mut turn = 0;
    while tried.last().as_deref() != Some("good") {
        turn += 1;
        assert!(turn < 300, "it stands behind the strangers");
        let asked = tried.questions();
        tried.go.add_permits(1);
        tried.until(|tried| tried.questions() > asked).await;
    }
    tried.go.add_permits(STRANGERS);
    assert_eq!(verdict(good).await.as_deref(), Ok("ada"));
    for stranger in flood {
        assert!(verdict(stranger).await.is_err());
    }
}

#[tokio::test]
async fn strangers_who_hang_up_leave_the_line() {
    let tried = Tried::new(|_| {}).await;
    let flood = tried.flood(1_024).await;
    assert_eq!(verdict(tried.begin("one-more")).await, Err(TokenError::Unavailable));
    for stranger in &flood {
        stranger.abort();
    }
    for stranger in flood {
        assert!(limited("a stranger is gone", stranger).await.unwrap_err().is_cancelled());
    }
    // As soon as they have left it, there is room; and the issuer is not asked about any of them.
    tried.go.add_permits(PLACES + 1);
    let late = async {
        loop {
            match verdict(tried.begin("late")).await {
                Err(TokenError::Unavailable) => tokio::task::yield_now().await,
                verdict => return verdict,
            }
        }
    };
    assert_eq!(limited("room", late).await, Err(TokenError::Invalid));
    assert_eq!((tried.last().as_deref(), tried.questions()), (Some("late"), PLACES + 1));
}

#[tokio::test]
async fn a_question_that_all_have_left_is_asked_for_who_comes_back() {
    let tried = Tried::new(|_| {}).await;
    let flood = tried.flood(PLACES).await;
    let (first, second) = (tried.begin("good"), tried.begin("good"));
    first.abort();
    assert!(limited("the first is gone", first).await.unwrap_err().is_cancelled());
    tried.go.add_permits(PLACES + 1);
    assert_eq!(verdict(second).await.as_deref(), Ok("ada"));
    for stranger in flood {
        assert_eq!(verdict(stranger).await, Err(TokenError::Invalid));
    }
    assert_eq!(tried.questions(), PLACES + 1);
}

#[tokio::test]
async fn an_outage_is_told_once_however_many_wait_for_the_answer() {
    let tried = Tried::new(|_| {}).await;
    let waiting: Vec<_> = (0..20).map(|_| tried.begin("away")).collect();
    tried.until(|tried| tried.questions() == 1).await;
    tried.go.add_permits(1);
    for one in waiting {
        assert_eq!(verdict(one).await, Err(TokenError::Unavailable));
    }
    let heard = tried.heard.lock().unwrap();
    assert!(matches!(heard.as_slice(), [Failure::Unavailable(Outage::Status { status: 500, .. })]), "{heard:?}");
}

#[tokio::test]
async fn in_its_grace_a_token_is_taken_while_nobody_can_tell_and_no_longer() {
    for (grace, taken) in [(0, false), (120, true)] {
        let answers = saying_until_told(grace).await;
        let check = || async { limited("a verdict", answers.0.verify("good")).await.map(drop) };
        assert_eq!(check().await, Ok(()));
        answers.2.answers(|_| async { status(500) });
        answers.1.pass(61);
        assert_eq!(check().await.is_ok(), taken, "{grace}");
        assert_eq!(answers.2.asked(), 2, "it was asked all the same");
        answers.1.pass(118);
        assert_eq!(check().await.is_ok(), taken, "{grace}");
        answers.1.pass(1);
        assert_eq!(check().await, Err(TokenError::Unavailable));
        // The issuer's word counts at once.
        answers.2.answers(|_| async { reply(r#"{"active":true,"sub":"ada"}"#) });
        assert_eq!(check().await, Ok(()));
        answers.2.answers(|_| async { reply(r#"{"active":false}"#) });
        answers.1.pass(61);
        assert_eq!(check().await, Err(TokenError::Invalid));
        answers.2.answers(|_| async { status(500) });
        answers.1.pass(6);
        assert_eq!(check().await, Err(TokenError::Unavailable), "what was revoked has no grace");
    }
}

async fn saying_until_told(grace: u64) -> (IntrospectionVerifier, Arc<Manual>, Issuer) {
    let issuer = Issuer::start(|_| async { reply(r#"{"active":true,"sub":"ada"}"#) }).await;
    let clock = Manual::new();
    let mut options = IntrospectionOptions::new(format!("{}/i", issuer.url), "server", Secret::new("s"));
    options.clock = clock.clone();
    options.grace = Duration::from_secs(grace);
    (IntrospectionVerifier::new(options).unwrap(), clock, issuer)
}
