"""What asks the registry for the Avro converter, changed by `PatchResolver`.

`RegistryAnswers` makes no dead letter of a registry that is away, `KeptKeys` refuses a key that has
other fields than those in the topic.
"""
