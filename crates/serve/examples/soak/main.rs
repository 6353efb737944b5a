//! Mixed load on the 'everything' server for as long as is wanted; fails when memory, tasks, threads, descriptors or sessions
//! grow, or when anything of them is left at the end.
//!
//! ```text
//! soak [--seconds 60] [--actors 24] [--leak memory|tasks|descriptors]
//! ```
//!
//! The soak sees a leak that comes to more than [`Series::allowance`] in two thirds of the time. In a minute that is about
//! 1 KiB for each piece of load, in an hour some 20 bytes.
//!
//! The server is a process of its own (`everything --soak`, built beside this program); so is a second one, over stdio. A
//! third of the time, at most half a minute, is warm-up. With `--leak` the server is made to leak, and this has to fail.
//! `benches/serve/soak.md` has an hour of it.

mod children;
mod client;
mod figures;
mod legacy;
mod load;
mod modern;
mod rough;
mod verdict;

use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::Path;
use std::process::{Child, Command, ExitCode, Stdio};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::children::Served;
use crate::client::Outcome;
use crate::figures::{Figures, Process};
use crate::load::{Tally, Target, act};
use crate::verdict::Series;

const USAGE: &str = "usage: soak [--seconds 60] [--actors 24] [--leak memory|tasks|descriptors]";

/// How long the server may take to have let go of everything: longer than any of its limits.
const REST: Duration = Duration::from_secs(30);

const MIB: f64 = 1_048_576.0;

struct Plan {
    seconds: f64,
    actors: u64,
    leak: Option<String>,
}

fn main() -> ExitCode {
    match run() {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("{error}");
            ExitCode::from(2)
        }
    }
}

fn run() -> Outcome<bool> {
    let plan = Plan::read(std::env::args().skip(1))?;
    let program = std::env::current_exe()?.with_file_name("everything");
    let (server, address) = Server::start(&program)?;
    let target = Target { address, program, leak: plan.leak.clone() };
    tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(soak(&plan, &target, server.0.id()))
}

impl Plan {
    fn read(mut arguments: impl Iterator<Item = String>) -> Outcome<Self> {
        let mut plan = Plan { seconds: 60.0, actors: 24, leak: None };
        while let Some(argument) = arguments.next() {
            let value = arguments.next().ok_or(USAGE)?;
            match (argument.as_str(), value.as_str()) {
                ("--seconds", value) => plan.seconds = value.parse()?,
                ("--actors", value) => plan.actors = value.parse()?,
                ("--leak", "memory" | "tasks" | "descriptors") => plan.leak = Some(value),
                _ => return Err(USAGE.into()),
            }
        }
        Ok(plan)
    }
}

/// The server's process; it ends with this.
struct Server(Child);

impl Server {
    fn start(program: &Path) -> Outcome<(Self, SocketAddr)> {
        let mut command = Command::new(program);
        command.args(["http", "--soak"]).stdout(Stdio::piped()).stdin(Stdio::null());
        let child = command.spawn().map_err(|error| format!("{}: {error}", program.display()))?;
        let mut server = Server(child);
        let mut line = String::new();
        BufReader::new(server.0.stdout.take().ok_or("no stdout")?).read_line(&mut line)?;
        let address = line.trim().strip_prefix("listening on http://").and_then(|url| url.strip_suffix("/mcp"));
        let address = address.ok_or_else(|| format!("the server said {line:?}"))?.parse()?;
        Ok((server, address))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// Whether nothing grew and nothing was left.
async fn soak(plan: &Plan, target: &Target, pid: u32) -> Outcome<bool> {
    let mut beside = Served::start(target).await?;
    beside.work().await?;
    let base = settled(target, pid, None).await?;
    let tally = Arc::new(Mutex::new(Tally::default()));
    let stop = CancellationToken::new();
    let mut actors = JoinSet::new();
    for seed in 0..plan.actors {
        actors.spawn(act(target.clone(), seed, Arc::clone(&tally), stop.clone()));
    }
    let watched = watch(plan, target, pid, &mut beside, &tally).await;
    stop.cancel();
    actors.join_all().await;
    let (series, load) = watched?;
    let rest = settled(target, pid, Some(&base)).await?;
    let tally = tally.lock().unwrap_or_else(PoisonError::into_inner);
    print_tally(&tally);
    let steady = print_courses(&series, &load);
    let is_back = rest.is_back_at(&base);
    print_rest(&base, &rest);
    Ok(steady && is_back && tally.is_good())
}

/// Looks again and again, and lets the server over stdio work between.
async fn watch(
    plan: &Plan,
    target: &Target,
    pid: u32,
    beside: &mut Served,
    tally: &Mutex<Tally>,
) -> Outcome<(Vec<Series>, Series)> {
    let mut all = vec![
        Series::new("memory, MiB", MIB, 4.0 * MIB),
        Series::new("tasks", 1.0, 30.0).following_load(),
        Series::new("threads", 1.0, 1.0),
        Series::new("descriptors", 1.0, 30.0),
        Series::new("sessions", 1.0, 50.0).following_load(),
        Series::new("stdio: memory, MiB", MIB, 2.0 * MIB),
        Series::new("stdio: threads", 1.0, 2.0),
        Series::new("stdio: descriptors", 1.0, 2.0),
    ];
    let mut load = Series::new("pieces a second", 1.0, f64::INFINITY);
    let began = Instant::now();
    // When the last look was, and how much was done by then.
    let mut done = (0.0, 0);
    let warm_up = (plan.seconds / 3.0).min(30.0);
    let mut looks = tokio::time::interval(Duration::from_secs_f64((plan.seconds / 200.0).max(0.2)));
    loop {
        looks.tick().await;
        beside.work().await?;
        let second = began.elapsed().as_secs_f64();
        if second >= plan.seconds {
            return Ok((all, load));
        }
        let total = tally.lock().unwrap_or_else(PoisonError::into_inner).total();
        let rate = (total - done.1) as f64 / (second - done.0);
        done = (second, total);
        if second < warm_up {
            continue;
        }
        load.points.push((second, rate));
        let (of, stdio) = (Figures::take(target, pid).await?, Process::of(beside.pid()?)?);
        let figures = [
            of.process.memory_bytes,
            of.own.tasks,
            of.process.threads,
            of.process.descriptors,
            of.own.sessions,
            stdio.memory_bytes,
            stdio.threads,
            stdio.descriptors,
        ];
        for (series, figure) in all.iter_mut().zip(figures) {
            series.points.push((second, figure as f64));
        }
    }
}

/// The figures once nothing more changes: with a base, once they are back there; or as they are after [`REST`].
async fn settled(target: &Target, pid: u32, base: Option<&Figures>) -> Outcome<Figures> {
    let began = Instant::now();
    loop {
        let mut figures = Figures::take(target, pid).await?;
        // Connections go to a worker by chance, and each tells of itself only once it was asked.
        for _ in 0..32 {
            figures = Figures::take(target, pid).await?;
        }
        if base.is_none_or(|base| figures.is_back_at(base)) || began.elapsed() > REST {
            return Ok(figures);
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

fn print_tally(tally: &Tally) {
    println!("{:38} {:>10} {:>8}", "load", "done", "failed");
    for (name, count) in &tally.kinds {
        let first = count.first.as_deref().map(|first| format!("  first: {first}")).unwrap_or_default();
        println!("{name:38} {:>10} {:>8}{first}", count.done, count.failed);
    }
    println!("{:38} {:>10}\n", "all", tally.total());
}

/// True when none grew.
fn print_courses(all: &[Series], load: &Series) -> bool {
    println!("{:22} {:>10} {:>10} {:>12}", "under load", "start", "end", "an hour");
    let mut steady = true;
    for series in all.iter().chain([load]) {
        let Some(course) = series.course(load) else {
            println!("{:22} too few looks: soak for longer", series.name);
            steady = false;
            continue;
        };
        let shown = |figure: f64| figure / series.unit;
        let verdict = if course.grew { "  GREW" } else { "" };
        steady &= !course.grew;
        println!(
            "{:22} {:>10.1} {:>10.1} {:>+12.2}{verdict}",
            series.name,
            shown(course.first),
            shown(course.last),
            shown(course.per_hour)
        );
    }
    steady
}

fn print_rest(base: &Figures, rest: &Figures) {
    println!("\n{:22} {:>10} {:>10}", "at rest", "before", "after");
    let rows = [
        ("memory, KiB", base.process.memory_bytes / 1024, rest.process.memory_bytes / 1024),
        ("tasks", base.own.tasks, rest.own.tasks),
        ("threads", base.process.threads, rest.process.threads),
        ("descriptors", base.process.descriptors, rest.process.descriptors),
        ("sessions", base.own.sessions, rest.own.sessions),
    ];
    for (name, before, after) in rows {
        let verdict = if after > before && name != "memory, KiB" { "  LEFT" } else { "" };
        println!("{name:22} {before:>10} {after:>10}{verdict}");
    }
}
