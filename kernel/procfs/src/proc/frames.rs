//! What the allocators say of themselves: `/proc/buddyinfo`, `/proc/zoneinfo`,
//! `/proc/slabinfo` and their lines in `/proc/vmstat`.

use core::fmt::{Result, Write};

use base::PAGE_BYTES;
use vfs::pseudo::Text;

/// Free blocks of each order, by zone, as Linux prints them. What rests in the caches of
/// CPUs is in no block.
pub(super) fn buddyinfo(text: &mut Text) -> Result {
    for zone in mach::mem::zone_stats() {
        let name = if zone.is_low { "DMA32" } else { "Normal" };
        write!(text, "Node {}, zone {name:>8} ", zone.node.0)?;
        for blocks in zone.blocks {
            write!(text, "{blocks:>6} ")?;
        }
        text.push('\n');
    }
    Ok(())
}

/// Free and managed pages of each zone. Programs are refused the reserve (`mach::mem`).
pub(super) fn zoneinfo(text: &mut Text) -> Result {
    for zone in mach::mem::zone_stats() {
        let name = if zone.is_low { "DMA32" } else { "Normal" };
        let blocks = zone.blocks.iter().enumerate();
        let free: u64 = blocks.map(|(order, count)| count << order).sum();
        let (managed, reserve) = (zone.managed, mach::mem::reserve_of(zone.managed));
        writeln!(text, "Node {}, zone {name:>8}", zone.node.0)?;
        writeln!(text, "  pages free     {free}")?;
        for (field, pages) in [
            ("min", reserve),
            ("low", reserve),
            ("high", reserve),
            ("spanned", managed),
            ("present", managed),
            ("managed", managed),
        ] {
            writeln!(text, "        {field:<8} {pages}")?;
        }
    }
    Ok(())
}

/// The sizes of the kernel's heap, as Linux prints its caches (format 2.1).
pub(super) fn slabinfo(text: &mut Text) -> Result {
    writeln!(text, "slabinfo - version: 2.1")?;
    text.push_str("# name            <active_objs> <num_objs> <objsize> <objperslab> ");
    text.push_str("<pagesperslab> : tunables <limit> <batchcount> <sharedfactor> ");
    text.push_str(": slabdata <active_slabs> <num_slabs> <sharedavail>\n");
    for class in mach::mem::class_stats() {
        let name = alloc::format!("kmalloc-{}", class.object_bytes);
        let all = class.slabs * class.slab_objects;
        let used = all.saturating_sub(class.free);
        let (bytes, objects, pages) = (class.object_bytes, class.slab_objects, class.slab_pages);
        write!(
            text,
            "{name:<17} {used:6} {all:6} {bytes:6} {objects:4} {pages:4}"
        )?;
        let slabs = class.slabs;
        let tunables = " : tunables    0    0    0";
        writeln!(text, "{tunables} : slabdata {slabs:6} {slabs:6} {:6}", 0)?;
    }
    Ok(())
}

/// Lines of `/proc/vmstat` under Linux's names. There is no swap, no block device and no
/// daemon that looks for pages, so what they would have done is nothing.
pub(super) fn events(text: &mut Text) -> Result {
    let faults = mach::cpu::all().iter().map(sched::faults_of);
    let [quick, slow] = faults.fold([0; 2], |sums, [quick, slow]| {
        [sums[0] + quick, sums[1] + slow]
    });
    let page = PAGE_BYTES as u64;
    let files = kernel_pagecache::counts();
    let balloon = mm::balloon::counts();
    for (name, count) in [
        ("nr_file_pages", files.pages),
        ("nr_slab_unreclaimable", mach::mem::heap_bytes() / page),
        ("nr_shmem", mm::page_count()),
        ("nr_dirty", files.dirty),
        ("nr_writeback", files.under_way),
        ("nr_balloon_pages", balloon.held),
        ("balloon_inflate", balloon.inflated),
        ("balloon_deflate", balloon.deflated),
        ("pgpgin", 0),
        ("pgpgout", 0),
        ("pswpin", 0),
        ("pswpout", 0),
        ("pgfault", quick + slow),
        ("pgmajfault", slow),
        ("pgscan_kswapd", 0),
        ("pgscan_direct", 0),
        ("pgsteal_kswapd", 0),
        ("pgsteal_direct", 0),
        ("allocstall_normal", mm::reclaim::stall_count()),
        ("oom_kill", task::out_of_memory::kill_count()),
    ] {
        writeln!(text, "{name} {count}")?;
    }
    Ok(())
}

/// Lines of `/proc/vmstat`: what is free, and what the caches of all CPUs did.
pub(super) fn counters(text: &mut Text) -> Result {
    let caches = mach::mem::cache_stats();
    for (name, count) in [
        ("nr_free_pages", mach::mem::stats().free),
        ("frames_resting", caches.resting),
        ("frames_requests", caches.requests),
        (
            "frames_cache_hits",
            caches.requests.saturating_sub(caches.misses),
        ),
        ("frames_refills", caches.misses),
        ("frames_returns", caches.returns),
        ("frames_zeroed_idle", caches.zeroed_idle),
        ("frames_zeroed_now", caches.zeroed_now),
        ("frames_found_zero", caches.found_zero),
    ] {
        writeln!(text, "{name} {count}")?;
    }
    Ok(())
}
