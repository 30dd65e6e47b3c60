//! Burst and Mbuf with real buffers: each is owned once, whatever is done to the burst.

mod common;

use npcc_dpdk::{AllocError, Burst, FillError, HEADROOM, Mempool};
use proptest::prelude::*;
use proptest::test_runner::{Config, TestRunner};

/// Operation on a burst.
#[derive(Clone, Copy, Debug)]
enum Step {
    Push,
    Pop,
    Take(usize),
    DrainSome(usize),
    MoveOut,
    FreeAll,
    Swap(usize, usize),
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        4 => Just(Step::Push),
        1 => Just(Step::Pop),
        1 => (0_usize..9).prop_map(Step::Take),
        1 => (0_usize..9).prop_map(Step::DrainSome),
        1 => Just(Step::MoveOut),
        1 => Just(Step::FreeAll),
        1 => (0_usize..8, 0_usize..8).prop_map(|(a, b)| Step::Swap(a, b)),
    ];
    proptest::collection::vec(step, 0..60)
}

/// Applies the same steps to a burst and to a plain vector of tags.
fn against_a_vector(pool: &Mempool, steps: Vec<Step>) -> Result<(), TestCaseError> {
    let mut burst = Burst::<8>::new();
    let mut model: Vec<u16> = Vec::new();
    let mut next = 0;
    for step in steps {
        match step {
            Step::Push => {
                let refused = burst
                    .push(common::mbuf(pool, &common::frame(next, 64)))
                    .is_err();
                prop_assert_eq!(refused, model.len() == 8);
                if !refused {
                    model.push(next);
                }
                next += 1;
            }
            Step::Pop => prop_assert_eq!(burst.pop().is_some(), model.pop().is_some()),
            Step::Take(i) => {
                let taken = burst.take(i).map(|mbuf| mbuf.data()[15]);
                let expected = (i < model.len()).then(|| model.remove(i).to_be_bytes()[1]);
                prop_assert_eq!(taken, expected);
            }
            Step::DrainSome(n) => {
                prop_assert_eq!(burst.drain().take(n).count(), n.min(model.len()));
                model.clear();
            }
            Step::MoveOut => {
                let mut other = Burst::<5>::new();
                let n = other.append(&mut burst);
                let moved: Vec<u16> = model.drain(..model.len().min(5)).collect();
                prop_assert_eq!(n, moved.len());
                prop_assert_eq!(common::tags(&other), moved);
            }
            Step::FreeAll => {
                prop_assert_eq!(burst.free_all(), model.len());
                model.clear();
            }
            Step::Swap(a, b) if a < model.len() && b < model.len() => {
                burst.as_mut_slice().swap(a, b);
                model.swap(a, b);
            }
            Step::Swap(..) => {}
        }
        prop_assert_eq!(common::tags(&burst), model.clone());
        prop_assert_eq!(usize::try_from(pool.in_use()), Ok(model.len()));
    }
    drop(burst);
    prop_assert_eq!(pool.in_use(), 0);
    Ok(())
}

#[test]
fn a_buffer_is_owned_once() {
    let eal = common::eal();
    let pool = common::pool(&eal, 512);

    // Against a plain vector of tags; the pool's count says whether a buffer was lost or freed
    // twice.
    let mut runner = TestRunner::new(Config {
        failure_persistence: None,
        ..Config::default()
    });
    runner
        .run(&steps(), |steps| against_a_vector(&pool, steps))
        .unwrap();

    // Forgetting a drain leaks what it held and frees nothing twice.
    let mut burst = common::burst::<4>(&pool, 0, 4);
    std::mem::forget(burst.drain());
    assert!(burst.is_empty());
    drop(burst);
    assert_eq!(pool.in_use(), 4);

    let mut small = Burst::<4>::new();
    assert_eq!(
        pool.alloc_bulk(&mut small, 5),
        Err(AllocError::NoRoom { wanted: 5, room: 4 })
    );

    // The room of a buffer: exactly frame_room behind the headroom, and the headroom before.
    let mut mbuf = pool.alloc().unwrap();
    assert!(mbuf.is_empty() && mbuf.data().is_empty());
    assert_eq!((mbuf.headroom(), mbuf.tailroom()), (HEADROOM, 512));
    assert_eq!(
        mbuf.fill(&[7; 513]),
        Err(FillError::TooLong {
            needed: 513,
            room: 512
        })
    );
    mbuf.fill(&[7; 512]).unwrap();
    assert_eq!(
        (mbuf.len(), mbuf.tailroom(), mbuf.segment_count()),
        (512, 0, 1)
    );
    assert!(!mbuf.prepend(usize::from(HEADROOM) + 1));
    assert!(!mbuf.prepend(65_536));
    assert!(mbuf.prepend(usize::from(HEADROOM)));
    mbuf.data_mut()[..4].copy_from_slice(&[1, 2, 3, 4]);
    assert_eq!((mbuf.len(), mbuf.headroom()), (640, 0));
    assert_eq!(mbuf.segments().map(<[u8]>::len).collect::<Vec<_>>(), [640]);
    assert!(!mbuf.trim_front(641));
    assert!(mbuf.trim_front(2));
    assert_eq!(mbuf.data()[..2], [3, 4]);
    assert!(!mbuf.truncate(639));
    assert!(mbuf.truncate(1));
    assert_eq!((mbuf.data(), mbuf.len()), (&[3][..], 1));
    assert!(mbuf.trim_front(1) && mbuf.is_empty());
    mbuf.prefetch();
    mbuf.prefetch_header();
}
