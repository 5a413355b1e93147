echo $& \1 $HOME
