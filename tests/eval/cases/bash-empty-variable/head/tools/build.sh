#!/usr/bin/env bash
set -e
rm -rf "$BUILD_DIR"/*
make all
