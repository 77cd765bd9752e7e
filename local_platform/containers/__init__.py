"""What `docker-compose.yaml` and `Dockerfile` need beside the public images.

Here: start scripts of the servers, passwords for the containers, the jars that public images
lack, the platform's principals on the east cluster. Not here: what the servers do. Settings
that both ways to run them share are compared with `services/` by a test.
"""
