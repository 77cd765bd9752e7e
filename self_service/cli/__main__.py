"""`python -m self_service.cli`: the same as `sdm`."""

from self_service.cli import main

if __name__ == "__main__":
    main()
