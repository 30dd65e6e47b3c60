//! Functions on worker lcores: results, panics, and who holds what meanwhile.

mod common;

use std::sync::mpsc;

use npcc_dpdk::{Burst, Clock, Eal, LaunchError, Lcore, Port, PortConfig};

#[test]
fn a_worker_runs_what_it_is_given_and_a_panic_comes_back() {
    // Two lcores on processor 0, so that one processor is enough for this test.
    let eal = Eal::init(&common::eal_args(&["--lcores", "0@0,1@0"])).unwrap();
    assert_eq!(Lcore::current(), Some(eal.main_lcore()));
    let workers = eal.workers();
    assert_eq!(
        workers.iter().map(|lcore| lcore.id()).collect::<Vec<_>>(),
        [1]
    );
    let worker = workers[0];
    assert_eq!(worker.cpu(), Some(0));

    let pool = common::pool(&eal, 2048);
    let mut port = Port::open_by_device(&eal, "net_null0").unwrap();
    port.configure(&PortConfig::default(), &pool).unwrap();
    port.start().unwrap();
    let mut rx = port.rx_queue(0).unwrap();
    let handle = eal
        .launch(worker, move || {
            let mut burst = Burst::<16>::new();
            rx.rx(&mut burst);
            (Lcore::current(), burst)
        })
        .unwrap();
    let (lcore, burst) = handle.join().unwrap();
    assert_eq!((lcore, burst.len()), (Some(worker), 16));
    assert_eq!(pool.in_use(), 16);
    drop(burst);

    let (go, wait) = mpsc::channel::<()>();
    let busy = eal.launch(worker, move || wait.recv()).unwrap();
    assert!(!busy.is_finished());
    assert_eq!(
        eal.launch(worker, || ()).unwrap_err(),
        LaunchError::Busy { lcore: 1 }
    );
    go.send(()).unwrap();
    busy.join().unwrap().unwrap();

    let main = eal.main_lcore();
    assert_eq!(
        eal.launch(main, || ()).unwrap_err(),
        LaunchError::NotAWorker { lcore: 0 }
    );

    let panic = eal
        .launch(worker, || -> u32 { panic!("queue {} is odd", 3) })
        .unwrap()
        .join()
        .unwrap_err();
    assert_eq!(
        panic.to_string(),
        "the function on lcore 1 panicked: queue 3 is odd"
    );
    assert_eq!(
        eal.launch(worker, || 5).unwrap().join(),
        Ok(5),
        "the lcore survives a panic"
    );

    let elsewhere = std::thread::spawn(Lcore::current).join().unwrap();
    assert_eq!(elsewhere, None);

    let clock = Clock::new(&eal);
    let start = std::time::Instant::now();
    let from = clock.now_ns();
    std::thread::sleep(std::time::Duration::from_millis(50));
    let (ours, theirs) = (
        clock.now_ns() - from,
        u64::try_from(start.elapsed().as_nanos()).unwrap(),
    );
    assert!(
        ours.abs_diff(theirs) < theirs / 100,
        "TSC says {ours} ns, the kernel {theirs} ns"
    );
}
