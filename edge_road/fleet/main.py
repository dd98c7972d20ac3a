"""`edge-road fleet`: the vehicles of a broker on one page."""

from __future__ import annotations

import argparse
import logging
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from edge_road.arguments import seconds
from edge_road.clock import SystemClock
from edge_road.config import check_settings
from edge_road.fleet.broker import BrokerAddress, Subscriber, parse_broker
from edge_road.fleet.fleet import Fleet, Record
from edge_road.fleet.store import MOST_ROWS, FleetStore, StoreWriter
from edge_road.fleet.web import serve
from edge_road.logs import set_up_logging
from edge_road.secret_file import read_secret
from edge_road.web.guard import Guard
from edge_road.web.server import listen
from edge_road.web.settings import ServerSettings

log = logging.getLogger(__name__)


def main(arguments: Sequence[str] | None = None) -> int:
    options = _parser().parse_args(arguments)
    set_up_logging()
    settings = _web_settings(options)
    guard = Guard(settings, read_secret(settings.token_file) if settings.token_file else None)
    address = _broker_address(options)
    channel = listen(settings)
    store = FleetStore(options.store, options.store_rows) if options.store else None
    _run(options, settings, guard, address, channel, store)
    return 0


def _run(
    options: argparse.Namespace,
    settings: ServerSettings,
    guard: Guard,
    address: BrokerAddress,
    channel: Any,
    store: FleetStore | None,
) -> None:
    from edge_road.fleet.web_app import build_app

    writer = None if store is None else StoreWriter(store)
    fleet = Fleet(address.prefix, SystemClock(), _nothing if writer is None else writer.keep)
    if store is not None and writer is not None:
        fleet.restore(store.points())
        writer.start()
    subscriber = Subscriber(address, fleet.take)
    subscriber.start()
    log.info("http://%s:%d", settings.host, channel.getsockname()[1])
    try:
        app = build_app(fleet, lambda: _health(subscriber, writer, fleet), guard, settings.clients)
        serve(app, channel, settings.clients, options.duration)
    finally:
        subscriber.close()
        if writer is not None:
            writer.close()


def _nothing(record: Record) -> None:
    """Without a store nothing is kept."""


def _health(subscriber: Subscriber, writer: StoreWriter | None, fleet: Fleet) -> dict[str, Any]:
    return {
        "broker": subscriber.trouble or "ok",
        "store": "none" if writer is None else writer.trouble or "ok",
        "lost": 0 if writer is None else writer.lost,
        "refused": fleet.refused,
    }


def _web_settings(options: argparse.Namespace) -> ServerSettings:
    values = {"host": options.host, "port": options.port, "names": options.name}
    if options.token_file is not None:
        values["token_file"] = options.token_file
    return check_settings(ServerSettings, values, where="the command line")


def _broker_address(options: argparse.Namespace) -> BrokerAddress:
    host, port = parse_broker(options.broker, options.tls)
    values = {
        "host": host,
        "port": port,
        "prefix": options.prefix,
        "username": options.username,
        "password": read_secret(options.password_file) if options.password_file else None,
        "tls": options.tls,
        "ca_file": options.ca_file,
    }
    return check_settings(BrokerAddress, values, where="the command line")


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="edge-road fleet",
        description="Show every vehicle of an MQTT broker on one page: state, age, reason and track. "
        "What is stale, repeated or damaged is unknown.",
    )
    add = parser.add_argument
    add("--broker", default="127.0.0.1", metavar="HOST[:PORT]", help="default: this machine")
    add("--prefix", default="edge_road", help="of the topics (default: edge_road)")
    add("--username", help="at the broker")
    add("--password-file", type=Path, metavar="FILE")
    add("--tls", action="store_true", help="talk to the broker through TLS (port 8883)")
    add("--ca-file", type=Path, metavar="FILE", help="who may have signed the broker's certificate")
    add("--host", default="127.0.0.1", help="address of the page; beyond this machine it needs a token")
    add("--port", type=int, default=8090, help="of the page (default: 8090)")
    add("--token-file", type=Path, metavar="FILE", help="whoever comes from outside must show this token")
    add("--name", action="append", default=[], help="host name under which the page may be asked for")
    add("--store", type=Path, metavar="FILE", help="keep events and tracks in this SQLite file")
    add("--store-rows", type=int, default=MOST_ROWS, metavar="N", help=f"at most (default: {MOST_ROWS})")
    add("--duration", type=seconds, metavar="S", help="end after this many seconds")
    return parser
