//! Costs of the recorder: added latency, exchanges a second, memory of open streams. See README.md.
//!
//! Direct and recorded exchanges alternate in one run, so that drift of the machine affects both equally. A benchmark
//! prints figures and asserts nothing.

mod peer;

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use mcpace_net::recorder::{Recorder, RecorderOptions};
use mcpace_net::{RingOptions, Sink, SinkOptions, TrafficMetrics};
use mcpace_record::{Instrument, RecordingHead};

type Outcome<T> = Result<T, Box<dyn std::error::Error>>;

const ROUNDS: usize = 20_000;
const WARM_UP: usize = 2_000;
/// Bytes of the flight recorder's folder, as `mcpace wrap` sets them.
const FLIGHT_LIMIT: u64 = 200 * 1024 * 1024;
const THROUGHPUT_TIME: Duration = Duration::from_secs(3);
const METRICS_ROUNDS: usize = 7;

fn main() -> Outcome<()> {
    let arguments: Vec<String> = std::env::args().skip(1).filter(|argument| argument != "--bench").collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        [] => {
            latency()?;
            throughput()?;
            metrics()?;
            streams(10_000)
        }
        ["latency"] => latency(),
        ["throughput"] => throughput(),
        ["metrics"] => metrics(),
        ["streams", count] => streams(count.parse()?),
        // The other side of `streams`, in a separate process so that its memory isn't counted.
        ["peer", count] => peer::hold_streams(count.parse()?),
        _ => Err("usage: recorder [latency | throughput | metrics | streams COUNT]".into()),
    }
}

/// Median time of exchanges on one kept-alive connection, alternately direct and through the recorder.
fn latency() -> Outcome<()> {
    let upstream = peer::null_server()?;
    let folder = tempfile::tempdir()?;
    let kinds = [
        ("kept in memory", SinkOptions::default(), None),
        ("written to a file", written_to(folder.path().join("recording")), None),
        ("by the flight recorder", flight_options(folder.path().join("flight")), None),
        ("kept in memory, with processor time", SinkOptions::default(), Some(std::process::id())),
    ];
    for (name, options, watch) in kinds {
        let recorder = record(&upstream, options, watch)?;
        let mut direct = Caller::connect(&upstream)?;
        let mut recorded = Caller::connect(recorder.url())?;
        let (mut without, mut with) = (Vec::new(), Vec::new());
        for round in 0..ROUNDS + WARM_UP {
            let (one, other) = (direct.exchange()?, recorded.exchange()?);
            if round >= WARM_UP {
                without.push(one);
                with.push(other);
            }
        }
        let (without, with) = (median(&mut without), median(&mut with));
        println!(
            "latency, {name}: direct {:.1} µs, recorded {:.1} µs, added {:.1} µs ({:.2} x)",
            micros(without),
            micros(with),
            micros(with) - micros(without),
            micros(with) / micros(without),
        );
    }
    Ok(())
}

/// Throughput of a closed loop of 32 connections on one thread. Generator, null server and recorder share the machine.
fn throughput() -> Outcome<()> {
    let upstream = peer::null_server()?;
    let folder = tempfile::tempdir()?;
    let kinds = [
        ("recorded, discarded", SinkOptions { keep: false, ..SinkOptions::default() }, None),
        ("recorded, written to a file", written_to(folder.path().join("recording")), None),
        ("recorded by the flight recorder", flight_options(folder.path().join("flight")), None),
        ("recorded with processor time, written", written_to(folder.path().join("other")), Some(std::process::id())),
    ];
    for (name, options, watch) in kinds {
        let direct = peer::closed_loop(&upstream, 32, THROUGHPUT_TIME)?;
        let recorder = record(&upstream, options, watch)?;
        let recorded = peer::closed_loop(recorder.url(), 32, THROUGHPUT_TIME)?;
        recorder.stop()?;
        println!("throughput, {name}: direct {direct:.0}/s, recorded {recorded:.0}/s ({:.2} x)", recorded / direct);
    }
    Ok(())
}

/// Processor time that the recorder's threads take for an exchange, without and with counts of the traffic, in turns.
fn metrics() -> Outcome<()> {
    let upstream = peer::null_server()?;
    let folder = tempfile::tempdir()?;
    let mut busy = [Vec::new(), Vec::new()];
    for _ in 0..METRICS_ROUNDS {
        for (counted, busy) in busy.iter_mut().enumerate() {
            let options = written_to(folder.path().join("recording"));
            let metrics = (counted == 1).then(|| Arc::new(TrafficMetrics::new(&[Duration::from_millis(1)])));
            let recorder = record(&upstream, SinkOptions { metrics: metrics.clone(), ..options }, None)?;
            peer::closed_loop(recorder.url(), 32, THROUGHPUT_TIME)?;
            busy.push(recorder_time()?.div_f64(recorder.sink().exchanges() as f64));
            recorder.stop()?;
            recorder.sink().finish()?;
            if let Some(metrics) = metrics {
                let counted: u64 = metrics.snapshot().durations.iter().flat_map(|series| &series.buckets).sum();
                println!("metrics: {counted} requests of {} exchanges", recorder.sink().exchanges());
            }
        }
    }
    let mut ratios: Vec<f64> =
        busy[0].iter().zip(&busy[1]).map(|(without, with)| with.div_duration_f64(*without)).collect();
    ratios.sort_unstable_by(f64::total_cmp);
    let [without, with] = busy.each_mut().map(|times| micros(median(times)));
    println!(
        "metrics: busy {without:.2} µs for an exchange without, {with:.2} µs with ({:.3} x, rounds {:.3} to {:.3})",
        ratios[METRICS_ROUNDS / 2],
        ratios[0],
        ratios[METRICS_ROUNDS - 1],
    );
    Ok(())
}

/// Processor time of the threads of recorders that run.
fn recorder_time() -> Outcome<Duration> {
    let mut total = Duration::ZERO;
    for task in std::fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        if std::fs::read_to_string(task.join("comm"))?.starts_with("mcpace-record") {
            let times = std::fs::read_to_string(task.join("schedstat"))?;
            let running = times.split(' ').next().ok_or("no times in schedstat")?;
            total += Duration::from_nanos(running.parse()?);
        }
    }
    Ok(total)
}

/// The recorder's resident memory with `count` event streams open through it, each after its first event.
fn streams(count: usize) -> Outcome<()> {
    // Two sockets for each stream, and some other files.
    let possible = usize::try_from(peer::raise_file_limit().saturating_sub(200) / 2)?;
    if count > possible {
        println!("streams: the limit of open files allows only {possible}");
    }
    let count = count.min(possible);
    let mut child = Command::new(std::env::current_exe()?)
        .args(["peer", &count.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()?;
    let mut told = BufReader::new(child.stdout.take().ok_or("the peer has no output")?);
    let mut line = String::new();
    told.read_line(&mut line)?;
    let recorder = record(line.trim(), SinkOptions::default(), None)?;
    let before = resident_bytes()?;
    writeln!(child.stdin.as_mut().ok_or("the peer has no input")?, "{}", recorder.url())?;
    line.clear();
    told.read_line(&mut line)?;
    let after = resident_bytes()?;
    println!(
        "streams: {} open, resident {:.0} MB before, {:.0} MB with them, {:.1} kB each",
        line.trim(),
        before / 1e6,
        after / 1e6,
        (after - before) / 1e3 / count as f64,
    );
    drop(child.stdin.take());
    child.wait()?;
    Ok(())
}

fn written_to(file: PathBuf) -> SinkOptions {
    SinkOptions { keep: false, file: Some(file), ..SinkOptions::default() }
}

fn flight_options(folder: PathBuf) -> SinkOptions {
    let ring = RingOptions::new(folder, FLIGHT_LIMIT, |sentence| println!("{sentence}"));
    SinkOptions { keep: false, ring: Some(ring), ..SinkOptions::default() }
}

fn record(upstream: &str, options: SinkOptions, watch: Option<u32>) -> Outcome<Recorder> {
    let head = RecordingHead {
        instrument: Instrument::Recorder,
        started: String::new(),
        started_at: None,
        mcpace: env!("CARGO_PKG_VERSION").to_owned(),
        upstream: upstream.to_owned(),
    };
    let sink: Arc<Sink> = Sink::new(head, options)?;
    Ok(Recorder::start(RecorderOptions { watch, ..RecorderOptions::new(upstream.parse()?) }, sink)?)
}

/// One kept-alive connection with blocking calls, the cheapest possible client.
struct Caller {
    stream: TcpStream,
    request: Vec<u8>,
    reply: Vec<u8>,
}

impl Caller {
    fn connect(url: &str) -> Outcome<Self> {
        let url: url::Url = url.parse()?;
        let stream = TcpStream::connect(url.socket_addrs(|| None)?.as_slice())?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(Duration::from_secs(10)))?;
        Ok(Self { stream, request: peer::request(&url), reply: vec![0; peer::reply().len()] })
    }

    fn exchange(&mut self) -> Outcome<Duration> {
        let start = Instant::now();
        self.stream.write_all(&self.request)?;
        // The recorder changes no byte of this reply.
        self.stream.read_exact(&mut self.reply)?;
        Ok(start.elapsed())
    }
}

fn median(times: &mut [Duration]) -> Duration {
    times.sort_unstable();
    times[times.len() / 2]
}

fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

fn resident_bytes() -> Outcome<f64> {
    let status = std::fs::read_to_string("/proc/self/status")?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("no VmRSS in /proc/self/status")?;
    Ok(line.trim().trim_end_matches(" kB").parse::<f64>()? * 1024.0)
}
