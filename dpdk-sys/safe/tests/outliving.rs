//! A buffer may outlive its pool and every handle of EAL: its memory stays.

mod common;

#[test]
fn a_buffer_outlives_pool_and_eal() {
    let eal = common::eal();
    let pool = common::pool(&eal, 2048);
    let frame = common::frame(9, 1000);
    let mbuf = common::mbuf(&pool, &frame);
    drop(pool);
    drop(eal);
    assert_eq!(mbuf.data(), frame);
    std::thread::spawn(move || drop(mbuf)).join().unwrap();
}
