//! The tables, as `::umastat` of illumos prints them.

use std::fmt::Write;

use crate::table::{Cache, Statistics, Thread};

/// Columns of the threads' table: the caches that hold the most.
const COLUMNS: usize = 12;

/// The text of all tables.
pub fn format(statistics: &Statistics) -> String {
    let mut text = match statistics.cap {
        0 => String::new(),
        _ => threads(statistics),
    };
    text += &caches(statistics);
    let (mapped, used) = (statistics.mapped, statistics.used);
    let _ = writeln!(text, "\n{:<25} {:>9} {:>9}", "vmem name", "in use", "total");
    let _ = writeln!(
        text,
        "{:<25} {:>9} {:>9}",
        "spans",
        human(used),
        human(mapped)
    );
    text
}

fn threads(statistics: &Statistics) -> String {
    let caches = &statistics.caches;
    let mut shown: Vec<usize> = (0..caches.len())
        .filter(|&class| caches[class].in_ptc > 0)
        .collect();
    shown.sort_by_key(|&class| {
        std::cmp::Reverse(
            caches[class]
                .in_ptc
                .saturating_mul(caches[class].object_bytes),
        )
    });
    shown.truncate(COLUMNS);
    shown.sort_unstable();
    let mut text = format!("{:>8} {:>8} {:>4} ", "tid", "cached", "cap");
    for &class in &shown {
        let _ = write!(text, "{:>6}", caches[class].object_bytes);
    }
    text.push('\n');
    for thread in &statistics.threads {
        let bytes = kept_bytes(thread, caches);
        let _ = write!(
            text,
            "{:>8} {:>8} {:>3}% ",
            thread.number,
            human(bytes),
            share(bytes, statistics.cap)
        );
        for &class in &shown {
            let bytes = thread.kept[class].saturating_mul(caches[class].object_bytes);
            let _ = write!(text, "{:>5}%", share(bytes, statistics.cap));
        }
        text.push('\n');
    }
    text
}

fn caches(statistics: &Statistics) -> String {
    let mut text = row(
        [
            "cache name",
            "size",
            "in use",
            "in ptc",
            "total",
            "memory",
            "succeed",
            "fail",
        ],
        statistics,
    );
    text.insert(0, '\n');
    for cache in statistics.caches.iter().filter(|cache| cache.taken > 0) {
        text += &line(cache, &cache.in_ptc.to_string(), statistics);
    }
    for cache in &statistics.made {
        text += &line(cache, "-", statistics);
    }
    text
}

fn line(cache: &Cache, in_ptc: &str, statistics: &Statistics) -> String {
    let [size, in_use, total, taken, failed] = [
        cache.object_bytes,
        cache.total.saturating_sub(cache.free),
        cache.total,
        cache.taken,
        cache.failed,
    ]
    .map(|number| number.to_string());
    let memory = human(cache.slabs.saturating_mul(cache.slab_bytes));
    row(
        [
            &cache.name,
            &size,
            &in_use,
            in_ptc,
            &total,
            &memory,
            &taken,
            &failed,
        ],
        statistics,
    )
}

/// A line of the caches' table. Where threads keep nothing there is no column for it.
fn row(cells: [&str; 8], statistics: &Statistics) -> String {
    let [name, size, in_use, in_ptc, total, memory, taken, failed] = cells;
    let in_ptc = match statistics.cap {
        0 => String::new(),
        _ => format!(" {in_ptc:>8}"),
    };
    format!(
        "{name:<25} {size:>6} {in_use:>9}{in_ptc} {total:>9} {memory:>7} {taken:>9} {failed:>5}\n"
    )
}

fn kept_bytes(thread: &Thread, caches: &[Cache]) -> u64 {
    let each = thread.kept.iter().zip(caches);
    each.map(|(kept, cache)| kept.saturating_mul(cache.object_bytes))
        .fold(0, u64::saturating_add)
}

fn share(part: u64, whole: u64) -> u64 {
    part.saturating_mul(100).checked_div(whole).unwrap_or(0)
}

/// Bytes as people read them.
fn human(bytes: u64) -> String {
    match bytes {
        0..1024 => bytes.to_string(),
        1024..1_048_576 => format!("{}K", bytes >> 10),
        1_048_576..1_073_741_824 => format!("{:.1}M", bytes as f64 / f64::from(1 << 20)),
        _ => format!("{:.1}G", bytes as f64 / f64::from(1 << 30)),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_threads_keep_counts_as_in_use_and_as_theirs() {
        let cache = Cache {
            name: "umem_alloc_64".into(),
            object_bytes: 64,
            slab_bytes: 16384,
            slabs: 2,
            total: 512,
            free: 500,
            taken: 12,
            in_ptc: 8,
            ..Cache::default()
        };
        let thread = Thread {
            number: 7,
            kept: vec![8],
        };
        let made = Cache {
            name: "thing".into(),
            in_ptc: 0,
            ..cache.clone()
        };
        let mut statistics = Statistics {
            cap: 1024,
            mapped: 4 << 20,
            used: 32 << 10,
            caches: vec![cache],
            made: vec![made],
            threads: vec![thread],
        };
        let text = format(&statistics);
        let words: Vec<Vec<&str>> = text
            .lines()
            .map(|line| line.split_whitespace().collect())
            .collect();
        assert_eq!(words[1], ["7", "512", "50%", "50%"]);
        assert_eq!(
            words[4],
            ["umem_alloc_64", "64", "12", "8", "512", "32K", "12", "0"]
        );
        assert_eq!(
            words[5],
            ["thing", "64", "12", "-", "512", "32K", "12", "0"]
        );
        assert_eq!(words[8], ["spans", "32K", "4.0M"]);
        statistics.cap = 0;
        let text = format(&statistics);
        assert!(!text.contains("tid") && !text.contains("ptc"), "{text}");
    }
}
